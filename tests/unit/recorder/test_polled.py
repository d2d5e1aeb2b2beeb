"""The journal of a cluster that can only be polled: nothing is invented, and unknown numbers are -1."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller_core.controller.loop.clock import SystemClock
from controller_core.journal.fold import fold
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.process.recording.metrics import RecorderMetrics
from controller_core.recorder.looker import ClusterLost, OutOfSight
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.recorder import Recorder
from tests.unit.journal.memory import MemoryJournal
from tests.unit.polling.quorum import CONFIGS, QUICK, Quorum, Topic, serve
from tests.unit.recorder.watching import Settings, list_recorded


class Polled:
    """A recorder of the cluster, and its journal."""

    def __init__(self, looker: PolledLooker) -> None:
        self.journal = MemoryJournal()
        self.recorder = Recorder(looker, self.journal, SystemClock(), Settings())

    async def look(self) -> list[Line]:
        """Return the lines that a look adds to the journal."""
        known = len(self.journal.lines)
        await self.recorder.look()
        return [entry.line for entry in self.journal.entries()[known:] if isinstance(entry, Record)]


@asynccontextmanager
async def poll(quorum: Quorum, timeout_ms: int = 10_000) -> AsyncIterator[Polled]:
    async with serve(quorum) as open_kept:
        looker = PolledLooker(open_kept, SystemClock(), timeout_ms=timeout_ms, pace=QUICK)
        try:
            yield Polled(looker)
        finally:
            looker.close()


def orders(*replicas: tuple[int, ...], **config: str) -> dict[str, Topic]:
    return {"orders": Topic([*replicas], {name.replace("_", "."): value for name, value in config.items()})}


async def test_the_first_look_is_a_snapshot_of_what_brokers_tell() -> None:
    quorum = Quorum(topics=orders((1, 2), retention_ms="5", secret_thing="x"))
    async with poll(quorum) as watched:
        lines = await watched.look()
    assert [line.kind for line in lines] == [
        *("recorder_started", "snapshot_started", "features", "broker", "topic", "assignment", "leadership"),
        *("topic_config", "snapshot_ended"),
    ]
    assert {(line.controller_id, line.controller_epoch, line.inferred) for line in lines} == {(101, 4, True)}
    found = {line.kind: line.delta for line in lines if line.delta is not None}
    state, broker, config = found["leadership"], found["broker"], found["topic_config"]
    assert (state.leader, state.isr, state.leader_epoch) == (1, [1, 2], 1)
    assert (state.partition_epoch, state.state_controller_epoch, broker.broker_epoch) == (-1, -1, -1)
    assert config.config == {"retention.ms": "5"}


async def test_what_differs_is_recorded_with_a_guessed_cause_and_nothing_counts_as_missed() -> None:
    quorum = Quorum(topics=orders((1, 2)))
    async with poll(quorum) as watched:
        await watched.look()
        quorum.topics["orders"].config["retention.ms"] = "7"
        quorum.topics["added"] = Topic([(2,)])
        quorum.decided += 5
        assert set(list_recorded(await watched.look())) == {
            ("topic", "topics_changed"),
            ("assignment", "topics_changed"),
            ("leadership", "topics_changed"),
            ("topic_config", "configs_changed"),
        }
        quorum.topics["orders"].isr, quorum.topics["orders"].leader_epoch = (2,), 3
        (line,) = await watched.look()
        assert (line.kind, line.cause, line.unclean) == ("leadership", "controlled_shutdown", False)
        assert await watched.look() == []
        assert watched.recorder.observed_journal.seen.versions_missed == 0
        folded = fold(watched.journal.entries())
    assert (folded.findings, folded.gaps) == ([], [])


async def test_a_move_has_what_comes_and_what_goes() -> None:
    quorum = Quorum(topics=orders((1, 2)))
    async with poll(quorum) as watched:
        await watched.look()
        quorum.topics["orders"].replicas = [(3, 2, 1)]
        quorum.moves["orders", 0] = ((3,), (1,))
        (assignment,) = [line for line in await watched.look() if line.kind == "assignment"]
    assert assignment.cause == "reassignments_requested"
    assert assignment.delta is not None
    assert (assignment.delta.adding, assignment.delta.removing) == ([3], [1])


async def test_a_topic_that_was_created_anew_under_its_name_is_another_one() -> None:
    quorum = Quorum(topics=orders((1,)))
    async with poll(quorum) as watched:
        await watched.look()
        quorum.topics = orders((1,))
        kinds = [line.kind for line in await watched.look()]
    assert kinds == ["leadership_removed", "topic_removed", "topic", "assignment", "leadership"]


async def test_an_election_among_the_controllers_is_a_new_term() -> None:
    quorum = Quorum(topics=orders((1,)))
    async with poll(quorum) as watched:
        await watched.look()
        quorum.leader, quorum.epoch = 102, 5
        lines = await watched.look()
    assert [line.kind for line in lines][:2] == ["controller_resigned", "controller_elected"]
    assert (lines[1].controller_id, lines[1].controller_epoch) == (102, 5)


async def test_what_changed_while_no_broker_answered_is_unobserved() -> None:
    quorum = Quorum(topics=orders((1, 2)))
    async with poll(quorum) as watched:
        await watched.look()
        quorum.is_away = True
        with pytest.raises(OutOfSight):
            await watched.recorder.look()
        await watched.recorder.looker.regain_sight()
        quorum.is_away = False
        quorum.topics["orders"].isr = (1,)
        assert list_recorded(await watched.look()) == [("leadership", "unobserved")]
        quorum.topics["orders"].isr = (1, 2)
        assert list_recorded(await watched.look()) == [("leadership", "alter_partition")]


async def test_it_gives_up_where_no_broker_answers_for_longer_than_is_waited_for() -> None:
    async with poll(Quorum(is_away=True), timeout_ms=0) as watched:
        with pytest.raises(OutOfSight):
            await watched.recorder.look()
        with pytest.raises(ClusterLost, match="no broker answered"):
            await watched.recorder.looker.regain_sight()


async def test_a_broker_with_zookeeper_is_told_apart() -> None:
    async with poll(Quorum(knows_quorum=False)) as watched:
        with pytest.raises(ClusterLost, match="give --zookeeper"):
            await watched.recorder.look()


async def test_a_look_at_everything_reads_all_configurations() -> None:
    quorum = Quorum(topics={f"topic-{number}": Topic([(1,)]) for number in range(250)})
    async with poll(quorum) as watched:
        await watched.look()
        asked = quorum.asked[CONFIGS]
        quorum.topics["topic-249"].config["retention.ms"] = "9"
        view = await watched.recorder.looker.look(everything=True)
    assert view.state.topic_configs == {"topic-249": {"retention.ms": "9"}}
    assert quorum.asked[CONFIGS] - asked == 3, "a hundred of them in each request"


async def test_its_metrics_tell_that_brokers_are_asked() -> None:
    async with poll(Quorum(topics=orders((1,)))) as watched:
        registry = CollectorRegistry()
        registry.register(RecorderMetrics(watched.recorder))
        assert registry.get_sample_value("kontroller_recorder_polls") == 1
        assert registry.get_sample_value("kontroller_recorder_log_offset") is None
