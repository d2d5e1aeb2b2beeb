"""The journal contains all actions of the controller, and its fold is the controller's state."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from controller_core.controller.loop.event_queue import EventQueue
from controller_core.controller.loop.events import BrokersChanged
from controller_core.controller.recording.term_journal import copy_state
from controller_core.journal.batches import Context, RecorderStarted, Snapshot
from controller_core.journal.changes import Changes, Kind, Tracked
from controller_core.journal.fold import fold
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk import paths
from controller_core.zk.session import Delete
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to


def lines(journal: MemoryJournal, kind: Kind) -> list[Line]:
    """The records of a kind that are of a change."""
    found = [entry.line for entry in journal.entries() if isinstance(entry, Record)]
    return [line for line in found if line.kind == kind and not line.snapshot]


async def test_a_failed_leader_is_recorded_with_cause_epochs_and_version() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        topic_id = cluster.create_topic("orders", [1, 2, 3])
        await cluster.settle()
        cluster.kill_broker(1)
        await cluster.settle()
        state = cluster.state(tp("orders"))
        last = lines(journal, Kind.LEADERSHIP)[-1]
        assert (last.topic, last.topic_id, last.partition) == ("orders", str(topic_id), 0)
        assert last.cause == "broker_failed"
        assert last.delta is not None
        assert last.delta.partition_epoch == state.partition_epoch
        assert last.delta.state_controller_epoch is None, "the same controller decided before"
        gone = lines(journal, Kind.BROKER_REMOVED)[-1]
        assert gone.broker == 1
        assert gone.correlation_id == last.correlation_id, "one event"
        assert_journal_folds_to(cluster.active.term.state, journal)


async def test_an_unclean_election_is_recorded_as_such() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        await cluster.serve()
        cluster.create_topic("logs", [1, 2], config={"unclean.leader.election.enable": "true"})
        await cluster.settle()
        cluster.kill_broker(2)
        await cluster.settle()
        assert [line for line in lines(journal, Kind.LEADERSHIP) if line.unclean] == []
        cluster.kill_broker(1)
        cluster.start_broker(2)
        await cluster.settle()
        assert [line.delta.leader for line in lines(journal, Kind.LEADERSHIP) if line.unclean and line.delta] == [2]
        assert_journal_folds_to(cluster.active.term.state, journal)


async def test_a_reassignment_and_a_deletion_are_recorded_step_by_step() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        cluster.request_reassignment({tp("orders"): [3, 2]})
        await cluster.settle()
        await cluster.replicate()
        await cluster.settle()
        deltas = [line.delta for line in lines(journal, Kind.ASSIGNMENT) if line.delta]
        assert any(delta.adding == [3] and delta.removing == [1] for delta in deltas)
        assert deltas[-1].adding == deltas[-1].removing == []
        cluster.request_deletion("orders")
        await cluster.settle()
        assert [line.topic for line in lines(journal, Kind.TOPIC_REMOVED)] == ["orders"]
        assert [line.partition for line in lines(journal, Kind.LEADERSHIP_REMOVED)] == [0]
        assert_journal_folds_to(cluster.active.term.state, journal)


async def test_replicas_in_failed_log_directories_are_recorded_until_their_broker_serves_them_again() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2], [2, 1], [1, 2])
        cluster.create_topic("logs", [1, 2])
        await cluster.settle()
        cluster.fail_log_dir(1, tp("orders", 2), tp("orders", 0))
        await cluster.settle()
        cluster.fail_log_dir(1, tp("logs"))
        await cluster.settle()
        told = lines(journal, Kind.OFFLINE_REPLICAS)
        assert [(line.broker, line.delta.partitions) for line in told if line.delta] == [
            (1, {"orders": [0, 2]}),
            (1, {"logs": [0], "orders": [0, 2]}),
        ]
        folded = assert_journal_folds_to(cluster.active.term.state, journal)
        assert folded.image is not None
        assert "offline_replicas|1|logs-0,orders-0,orders-2" in set(folded.image.texts())
        cluster.broker(1).offline.clear()
        cluster.bounce_broker(1)
        await cluster.settle()
        assert [line.broker for line in lines(journal, Kind.OFFLINE_REPLICAS_REMOVED)] == [1]
        assert_journal_folds_to(cluster.active.term.state, journal)


async def test_every_snapshot_proves_the_records_before_it() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(journal_snapshot_interval_seconds=0)
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2], [2, 3])
        await cluster.settle()
        cluster.bounce_broker(2)
        await cluster.settle()
        await cluster.replicate()
        folded = assert_journal_folds_to(cluster.active.term.state, journal)
        assert folded.proven > 3


async def test_each_controller_begins_a_sequence_of_its_own_with_a_snapshot() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        first = await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        await first.stop()
        cluster.kill_broker(1)
        await cluster.serve()
        assert_journal_folds_to(cluster.active.term.state, journal)
        elected = lines(journal, Kind.CONTROLLER_ELECTED)
        assert [line.seq for line in elected] == [0, 0]
        assert elected[1].controller_epoch == elected[0].controller_epoch + 1
        assert [line.reason for line in lines(journal, Kind.CONTROLLER_RESIGNED)] == ["the process is stopping"]


@pytest.mark.parametrize(
    ("act", "cause"),
    [
        (lambda cluster: cluster.kill_broker(1), "broker_failed"),
        (lambda cluster: cluster.bounce_broker(1), "broker_restarted"),
        (lambda cluster: cluster.start_broker(3), "broker_started"),
        (lambda cluster: [cluster.bounce_broker(1), cluster.kill_broker(2)], "broker_failed"),
    ],
    ids=["killed", "bounced", "started", "bounced and killed"],
)
async def test_what_brokers_did_is_the_cause(act: Callable[[Cluster], object], cause: str) -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        seen = len(journal.entries())
        act(cluster)
        await cluster.settle()
        after = [entry.line for entry in journal.entries()[seen:] if isinstance(entry, Record)]
        assert after
        assert {line.cause for line in after if line.kind != Kind.BROKER_STATIC_CONFIG or line.delta is None} == {cause}


async def test_an_idle_controller_says_that_it_is_alive_and_only_then() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.settings = replace(cluster.settings, brokers_timeout_ms=3_600_000)  # nothing else wakes the controller
        cluster.start_brokers(1)
        await cluster.serve()
        assert lines(journal, Kind.CONTROLLER_ALIVE) == []
        await cluster.settle(passing_ms=35_000)
        alive = lines(journal, Kind.CONTROLLER_ALIVE)
        assert {later.event_time_us - before.event_time_us for before, later in pairwise(alive)} == {10_000_000}
        assert {line.cause for line in alive} == {"journal_due"}
        told = [*lines(journal, Kind.CONTROLLER_ELECTED), *alive]
        assert {line.alive_interval_ms for line in told} == {10_000}, "or nobody knows when it was silent"
        later = asyncio.create_task(cluster.clock.sleep_ms(4_000))
        await cluster.settle(passing_ms=5_000)
        assert later.done()
        cluster.start_broker(2)
        await cluster.settle(passing_ms=17_000)
        (next_alive,) = lines(journal, Kind.CONTROLLER_ALIVE)[len(alive) :]
        assert next_alive.event_time_us - alive[-1].event_time_us == 14_000_000, (
            "the start and its file were records, too"
        )
        assert_journal_folds_to(cluster.active.term.state, journal)


async def test_a_controller_that_has_lost_its_role_is_not_declared_alive() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1)
        process = await cluster.serve()
        term = process.term
        await cluster.settle(passing_ms=12_000)
        seen = len(lines(journal, Kind.CONTROLLER_ALIVE))
        assert seen == 1
        cluster.write(Delete(path=paths.CONTROLLER))
        cluster.clock.pass_to_next(cluster.clock.monotonic_ms() + 60_000)
        await term.journal.record_alive()
        assert len(lines(journal, Kind.CONTROLLER_ALIVE)) == seen


async def test_an_idle_cluster_has_its_snapshots_in_time() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(journal_snapshot_interval_seconds=60)
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1)
        await cluster.serve()
        taken = len(lines(journal, Kind.SNAPSHOT_ENDED))
        await cluster.settle(passing_ms=200_000)
        assert len(lines(journal, Kind.SNAPSHOT_ENDED)) == taken + 3
        assert assert_journal_folds_to(cluster.active.term.state, journal).proven == taken + 2


async def test_a_record_says_how_long_the_controller_took() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        process = await cluster.serve()
        queue = EventQueue(cluster.clock)
        queue.put(BrokersChanged())
        heard_us = cluster.clock.now_ms() * 1000
        await cluster.settle(passing_ms=12_000)
        queued = await queue.next()
        term_journal = process.term.journal
        term_journal.begin_event(queued.event, queued.since_ms)
        process.term.state.remove_broker(BrokerId(2))
        await term_journal.end_event()
        last = lines(journal, Kind.BROKER_REMOVED)[-1]
        assert last.took_us is not None
        assert last.took_us > 0
        assert last.event_time_us - last.took_us == heard_us


async def test_the_end_of_a_process_is_no_late_part_of_its_last_event() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1)
        process = await cluster.serve()
        await cluster.settle()
        before = journal.entries()[-1]
        await process.stop()
        (end,) = lines(journal, Kind.CONTROLLER_RESIGNED)
        assert (end.cause, end.took_us) == ("controller_stopped", None)
        assert isinstance(before, Record)
        assert end.correlation_id != before.line.correlation_id


async def test_what_was_before_a_recorder_is_unknown_until_a_snapshot() -> None:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1)
        await cluster.serve()
        elected = lines(journal, Kind.CONTROLLER_ELECTED)[0]
        context = Context(
            cluster_id="test",
            controller_id=BrokerId(elected.controller_id),
            controller_epoch=ControllerEpoch(elected.controller_epoch),
            event_time_us=1,
            cause="recorder_started",
            correlation_id="r",
            is_inferred=True,
        )
        journal.append(RecorderStarted(context=context))
        folded = fold(journal.entries())
        assert (folded.image, folded.gaps, folded.findings) == (None, [], [])
        assert lines(journal, Kind.RECORDER_STARTED)[0].inferred
        journal.append(Snapshot(context=context, state=copy_state(cluster.active.term.state)))
        assert_journal_folds_to(cluster.active.term.state, journal)


def test_ways_to_change_that_would_not_be_noticed_do_not_exist() -> None:
    tracked: Tracked[int, int] = Tracked(Kind.BROKER, changes := Changes())
    changes.is_open = True
    tracked.update({1: 10, 2: 20})
    tracked[1] = 11
    assert tracked.pop(2) == 20
    del tracked[1]
    assert [(change.key, change.before, change.after) for change in changes.take()] == [
        (1, None, 10), (2, None, 20), (1, 10, 11), (2, 20, None), (1, 11, None),
    ]  # fmt: skip
    acts: list[Callable[[], object]] = [tracked.clear, tracked.popitem, lambda: tracked.setdefault(3, 3)]
    for act in acts:
        with pytest.raises(NotImplementedError):
            act()
