"""What the controller does is in its journal, and the fold of the journal is the controller's state."""

from collections.abc import Callable

import pytest

from controller_core.journal.changes import Changes, Kind, Tracked
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from tests.unit.controller.checks import simulated_cluster
from tests.unit.controller.harness import tp
from tests.unit.controller.process import ProcessSettings
from tests.unit.journal.memory import MemoryJournal, assert_history_comes_to


def lines(journal: MemoryJournal, kind: Kind) -> list[Line]:
    """The records of a kind that tell of a change."""
    found = [entry.line for entry in journal.entries() if isinstance(entry, Record)]
    return [line for line in found if line.kind == kind and not line.snapshot]


async def test_a_failed_leader_is_recorded_with_cause_epochs_and_version() -> None:
    async with simulated_cluster() as cluster:
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
        assert last.cause == "brokers_changed"
        assert last.delta is not None
        assert last.delta.partition_epoch == state.partition_epoch
        assert last.delta.state_controller_epoch is None, "the same controller decided before"
        gone = lines(journal, Kind.BROKER_REMOVED)[-1]
        assert gone.broker == 1
        assert gone.correlation_id == last.correlation_id, "one event"
        assert_history_comes_to(cluster.active.term.state, journal)


async def test_an_unclean_election_is_recorded_as_such() -> None:
    async with simulated_cluster() as cluster:
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
        assert_history_comes_to(cluster.active.term.state, journal)


async def test_a_reassignment_and_a_deletion_are_recorded_step_by_step() -> None:
    async with simulated_cluster() as cluster:
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
        assert_history_comes_to(cluster.active.term.state, journal)


async def test_every_snapshot_proves_the_history_before_it() -> None:
    async with simulated_cluster() as cluster:
        cluster.settings = ProcessSettings(journal_snapshot_interval_seconds=0)
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2], [2, 3])
        await cluster.settle()
        cluster.bounce_broker(2)
        await cluster.settle()
        await cluster.replicate()
        folded = assert_history_comes_to(cluster.active.term.state, journal)
        assert folded.proven > 3


async def test_each_controller_begins_a_sequence_of_its_own_with_a_snapshot() -> None:
    async with simulated_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.start_brokers(1, 2)
        first = await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        await first.stop()
        cluster.kill_broker(1)
        await cluster.serve()
        assert_history_comes_to(cluster.active.term.state, journal)
        elected = lines(journal, Kind.CONTROLLER_ELECTED)
        assert [line.seq for line in elected] == [0, 0]
        assert elected[1].controller_epoch == elected[0].controller_epoch + 1
        assert [line.reason for line in lines(journal, Kind.CONTROLLER_RESIGNED)] == ["the process is stopping"]


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
