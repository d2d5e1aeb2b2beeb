"""The configurations in brokers' own files are in the journal if the brokers answer. Nothing waits for the others."""

from collections.abc import Collection, Mapping

import pytest

from controller_core.controller.loop.events import StaticConfigAnswered
from controller_core.controller.operations.config_changes import on_static_config_answered
from controller_core.controller.recording.static_configs import LONGEST_PAUSE_MS, PATIENCE_MS
from controller_core.journal.changes import Kind
from controller_core.journal.configs import StaticConfig
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.model.ids import BrokerEpoch, BrokerId
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from simulation.process import ProcessSettings
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to
from tests.unit.journal.test_term_journal import lines

ASKED_MS = 12_000
"""The time by which the periodic work on the journal has run."""


async def add_journal(cluster: Cluster, *brokers: int) -> MemoryJournal:
    cluster.journal = journal = MemoryJournal()
    cluster.start_brokers(*brokers)
    for number in brokers:
        cluster.broker(number).static_config["min.insync.replicas"] = str(number)
    await cluster.serve()
    return journal


def read_said(journal: MemoryJournal) -> list[tuple[int | None, int | None, dict[str, str] | None]]:
    """Return the broker, its epoch, and its configuration, for each record."""
    recorded = lines(journal, Kind.BROKER_STATIC_CONFIG)
    return [(line.broker, line.delta.broker_epoch, line.delta.config) for line in recorded if line.delta]


def make_said(cluster: Cluster, number: int, value: str) -> tuple[int, int, dict[str, str]]:
    return number, cluster.broker(number).epoch, {"min.insync.replicas": value}


async def test_each_broker_is_asked_once_after_it_registered_and_again_when_it_started_anew() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster, 1, 2)
        await cluster.settle(passing_ms=3 * ASKED_MS)
        image = assert_journal_folds_to(cluster.active.term.state, journal).image
        assert image is not None
        assert sorted(image.static_configs) == [1, 2]
        assert read_said(journal) == [], "the process asked before its term, so the first snapshot has the answers"
        cluster.broker(2).static_config["min.insync.replicas"] = "7"
        cluster.bounce_broker(2)
        await cluster.settle(passing_ms=ASKED_MS)
        assert read_said(journal) == [make_said(cluster, 2, "7")]
        assert {line.cause for line in lines(journal, Kind.BROKER_STATIC_CONFIG)} == {"static_config_answered"}
        cluster.kill_broker(1)
        await cluster.settle()
        assert [line.broker for line in lines(journal, Kind.BROKER_STATIC_CONFIG_REMOVED)] == [2, 1]
        image = assert_journal_folds_to(cluster.active.term.state, journal).image
        assert image is not None
        assert list(image.static_configs) == [2]


async def test_a_broker_that_never_answers_delays_nobody_and_is_asked_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with simulate_cluster() as cluster:
        cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        asked = 0

        async def tell(_broker: BrokerId, _names: Collection[str]) -> Mapping[str, str]:
            nonlocal asked
            asked += 1
            await cluster.clock.sleep_ms(10**9)
            return {}

        monkeypatch.setattr(cluster.broker(2), "tell_static_config", tell)
        await cluster.serve()
        await cluster.settle(passing_ms=ASKED_MS)
        assert list(cluster.active.term.state.static_configs) == [1]
        cluster.create_topic("orders", [1])
        await cluster.settle(passing_ms=100)
        assert "orders" in cluster.active.term.state.topics
        await cluster.settle(passing_ms=20 * LONGEST_PAUSE_MS)
        before = asked
        await cluster.settle(passing_ms=2 * (LONGEST_PAUSE_MS + PATIENCE_MS))
        assert asked - before <= 2


async def test_an_answer_about_an_earlier_registration_is_dropped() -> None:
    async with simulate_cluster() as cluster:
        journal = await add_journal(cluster, 1)
        before = dict(cluster.active.term.state.static_configs)
        config = StaticConfig(broker_epoch=BrokerEpoch(1), config={"min.insync.replicas": "9"})
        for broker in (1, 5):
            await on_static_config_answered(cluster.active.term, StaticConfigAnswered(BrokerId(broker), config))
        assert dict(cluster.active.term.state.static_configs) == before
        assert read_said(journal) == []


async def test_it_is_in_snapshots_and_in_no_checksum() -> None:
    """A reader that has never heard of it proves the same, of as many entries as it knows."""
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(journal_snapshot_interval_seconds=60)
        journal = await add_journal(cluster, 1, 2)
        await cluster.settle(passing_ms=100_000)
        snapshots: list[list[Line]] = []
        for line in (entry.line for entry in journal.entries() if isinstance(entry, Record)):
            if line.kind == Kind.SNAPSHOT_STARTED:
                snapshots.append([])
            elif line.snapshot or line.kind == Kind.SNAPSHOT_ENDED:
                snapshots[-1].append(line)
        first, second = snapshots[:2]
        assert [line.kind for line in second].count(Kind.BROKER_STATIC_CONFIG) == 2
        assert (first[-1].entries, first[-1].checksum) == (second[-1].entries, second[-1].checksum)
        assert first[-1].entries == len(first) - 1 - 2
        assert assert_journal_folds_to(cluster.active.term.state, journal).proven == len(snapshots) - 1
