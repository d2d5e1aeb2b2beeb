"""Operations on very many partitions run one group at a time, with the same result."""

import asyncio
from collections.abc import Callable, Sequence

import orjson
import pytest
from structlog.testing import capture_logs

from controller_core.controller.recording import state_change_log
from controller_core.controller.recording.state_change_log import StateChangeLog
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.term import groups
from controller_core.model.ids import BrokerId, ControllerEpoch, TopicName, TopicPartition
from controller_core.model.metadata import LeaderAndIsr
from controller_core.wire.messages import AlterPartitionRequest, AlterPartitionResponse, ErrorCode, LeaderAndIsrRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, SetData, WriteOp
from simulation.checks import assert_sound
from simulation.cluster import Cluster, alter_partition, ids, tp
from simulation.process import LISTENERS, Process
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

PARTITIONS = 23


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that a test's few partitions fill."""
    monkeypatch.setattr(groups, "MOST_IN_A_GROUP", 3)
    monkeypatch.setattr(groups, "GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(groups, "GROUPS_TOLD_TOGETHER", 2)


async def populate(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", *([(number + step) % 4 + 1 for step in range(3)] for number in range(PARTITIONS)))
    await cluster.settle()


def expect_without_broker_1(number: int) -> tuple[int, list[int]]:
    staying = [broker for step in range(3) if (broker := (number + step) % 4 + 1) != 1]
    return staying[0], staying


def shrink(cluster: Cluster, partition: TopicPartition, *, leader: int, isr: Sequence[int]) -> AlterPartitionRequest:
    """Send the request of a leader that removes lagging members from its ISR."""
    broker = cluster.broker(leader)
    topic_id = cluster.topic(partition.topic).topic_id
    assert topic_id is not None
    return alter_partition(broker, topic_id, partition, broker.replicas[partition], ids(isr))


async def test_a_dead_broker_leads_nothing_and_is_in_no_isr_however_many_groups_that_takes(cluster: Cluster) -> None:
    await populate(cluster)
    cluster.kill_broker(1)
    await cluster.settle()
    found = [cluster.leadership(tp("orders", number)) for number in range(PARTITIONS)]
    assert found == [expect_without_broker_1(number) for number in range(PARTITIONS)]
    for number in range(PARTITIONS):
        leader = cluster.leader_of(tp("orders", number))
        assert leader is not None
        assert leader.id == found[number][0]
        state = cluster.state(tp("orders", number))
        assert leader.replicas[tp("orders", number)].leader_epoch == state.leader_and_isr.leader_epoch
        for broker in (2, 3, 4):
            sent = cluster.broker(broker).metadata.partitions[tp("orders", number)]
            assert (sent.leader, list(sent.isr)) == found[number]
            assert list(sent.offline_replicas) == [1] * (1 in sent.replicas)


async def test_leaders_are_sent_a_group_before_the_last_one_is_decided(cluster: Cluster) -> None:
    await populate(cluster)
    before = {number: len(cluster.broker(number).requests_of(LeaderAndIsrRequest)) for number in (2, 3, 4)}
    cluster.kill_broker(1)
    await cluster.settle()
    assert all(len(cluster.broker(n).requests_of(LeaderAndIsrRequest)) > before[n] + 1 for n in (2, 3, 4))


async def test_each_partition_is_written_once_for_a_dead_broker(cluster: Cluster) -> None:
    await populate(cluster)
    before = {number: cluster.state(tp("orders", number)) for number in range(PARTITIONS)}
    cluster.kill_broker(1)
    await cluster.settle()
    for number, state in before.items():
        written = cluster.state(tp("orders", number)).partition_epoch - state.partition_epoch
        assert written == (1 in state.leader_and_isr.isr)


async def test_a_partition_that_someone_else_wrote_is_decided_again_and_the_others_of_its_group_are_written(
    cluster: Cluster,
) -> None:
    await populate(cluster)
    foreign = tp("orders", 4)
    state = cluster.state(foreign)
    wider = LeaderAndIsr(leader=BrokerId(1), isr=ids([1, 3]), leader_epoch=state.leader_and_isr.leader_epoch)
    data = codecs.encode_partition_state(wider, state.controller_epoch)
    cluster.write(SetData(path=paths.partition_state(foreign), data=data))
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.leadership(foreign) == (3, [3])
    assert cluster.leadership(tp("orders", 8)) == expect_without_broker_1(8)


async def test_a_controlled_shutdown_hands_over_all_groups(cluster: Cluster) -> None:
    await populate(cluster)
    response = await cluster.shut_down(1)
    assert response is not None
    assert (response.error_code, response.remaining_partitions) == (ErrorCode.none, ())
    found = [cluster.leadership(tp("orders", number)) for number in range(PARTITIONS)]
    assert found == [expect_without_broker_1(number) for number in range(PARTITIONS)]
    assert not any(cluster.broker(1).leads(tp("orders", number)) for number in range(PARTITIONS))
    followed = [number for number in range(PARTITIONS) if cluster.broker(1).follows(tp("orders", number))]
    assert followed == list(range(0, PARTITIONS, 4)), "what it led it follows, and what it followed is stopped"


async def test_a_controller_that_is_fenced_in_the_middle_resigns_and_the_next_term_finishes(cluster: Cluster) -> None:
    await populate(cluster)
    states = {paths.partition_state(tp("orders", number)) for number in range(PARTITIONS)}
    writes = 0

    def fence(ops: Sequence[WriteOp]) -> None:
        nonlocal writes
        writes += any(op.path in states for op in ops)
        if writes == 3:
            cluster.zk.interventions.clear()
            cluster.put(paths.CONTROLLER_EPOCH, codecs.encode_controller_epoch(ControllerEpoch(7)))

    cluster.zk.interventions.append(fence)
    cluster.kill_broker(1)
    await cluster.settle()
    assert (cluster.active.terms, cluster.active.unexpected_errors) == (2, 0)
    found = [cluster.leadership(tp("orders", number)) for number in range(PARTITIONS)]
    assert found == [expect_without_broker_1(number) for number in range(PARTITIONS)]


async def test_who_is_alive_is_the_same_for_one_partition_and_for_many(cluster: Cluster) -> None:
    await populate(cluster)
    cluster.fail_log_dir(2, tp("orders", 0), tp("orders", 5))
    cluster.kill_broker(3)
    await cluster.settle()
    state = cluster.active.term.state
    alive = Liveness(state, state.live)
    for partition in state.all_partitions():
        assert alive(partition) == state.find_live_replicas(partition)
    assert alive(tp("orders", 5)) == set(ids([4]))


class AskedOnce:
    """An observer that asks for an ISR change when something holds for the first time, and looks when it is answered."""

    def __init__(
        self, process: Process, request: AlterPartitionRequest, *, at: Callable[[], bool], look: Callable[[], int]
    ) -> None:
        self._process, self._request = process, request
        self._at, self._look = at, look
        self._answer: asyncio.Task[AlterPartitionResponse] | None = None
        self.seen = -1

    def __call__(self) -> None:
        if self._answer is None and self._at():
            self._answer = asyncio.create_task(self._process.answer(self._request))
            self._answer.add_done_callback(self._note)

    def _note(self, _: object) -> None:
        self.seen = self._look()

    @property
    def error_code(self) -> ErrorCode:
        assert self._answer is not None
        return self._answer.result().topics[0].partitions[0].error_code


async def test_an_isr_change_is_answered_in_the_middle_of_a_broker_s_death(cluster: Cluster) -> None:
    await populate(cluster)
    asked = tp("orders", 1)
    shrunk = shrink(cluster, asked, leader=2, isr=(2, 3))
    process = cluster.active

    def count_members_that_are_dead() -> int:
        return sum(1 in cluster.leadership(tp("orders", number))[1] for number in range(PARTITIONS))

    cluster.kill_broker(1)
    asked_once = AskedOnce(process, shrunk, at=lambda: True, look=count_members_that_are_dead)
    cluster.zk.observers.append(asked_once)
    await cluster.settle()
    assert asked_once.error_code is ErrorCode.none
    assert asked_once.seen > 0
    assert count_members_that_are_dead() == 0
    assert cluster.leadership(asked) == (2, [2, 3])
    assert process.terms == 1
    assert_sound(cluster)


async def test_an_isr_change_is_answered_while_the_lines_of_an_event_are_written(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_change_log, "LINES_IN_A_TURN", 1)
    await populate(cluster)
    asked = tp("orders", 1)
    shrunk = shrink(cluster, asked, leader=2, isr=(2, 3))

    def lines() -> int:
        return sum(entry.get("cause") == "BrokersChanged" for entry in cluster.logs)

    def is_healed() -> bool:
        return all(1 not in cluster.leadership(tp("orders", number))[1] for number in range(PARTITIONS))

    cluster.kill_broker(1)
    before = lines()
    asked_once = AskedOnce(cluster.active, shrunk, at=is_healed, look=lines)
    cluster.zk.observers.append(asked_once)
    await cluster.settle()
    assert asked_once.error_code is ErrorCode.none
    assert before < asked_once.seen < lines()
    assert cluster.leadership(asked) == (2, [2, 3])
    changes = [entry for entry in cluster.logs if entry["event"] == "leadership" and str(asked) in entry["partitions"]]
    assert changes[-1]["cause"] == "RequestReceived"
    assert_sound(cluster)


def test_lines_that_an_error_cuts_short_are_written_all_the_same() -> None:
    async def write(changes: StateChangeLog) -> None:
        async def fail() -> None:
            raise RuntimeError("no more")

        await changes.write_gently(fail)

    identity = ControllerIdentity(id=BrokerId(9), epoch=ControllerEpoch(1), listeners=LISTENERS)
    changes = StateChangeLog(identity=identity)
    many = [tp("orders", number) for number in range(3 * state_change_log.LINES_IN_A_TURN)]
    with capture_logs() as logs:
        for number, partition in enumerate(many):
            changes.log_leadership(partition, None, LeaderAndIsr(leader=BrokerId(number), isr=()))
        with pytest.raises(RuntimeError):
            asyncio.run(write(changes))
    assert [line["partitions"] for line in logs] == [[str(partition)] for partition in many]


async def test_what_a_request_between_groups_changed_has_its_own_cause_in_the_journal(cluster: Cluster) -> None:
    journal = cluster.journal = MemoryJournal()
    await populate(cluster)
    shrunk = shrink(cluster, tp("orders", 1), leader=2, isr=(2, 3))
    cluster.kill_broker(1)
    answer: list[asyncio.Task[AlterPartitionResponse]] = []
    cluster.zk.observers.append(
        lambda: answer.append(asyncio.create_task(cluster.active.answer(shrunk))) if not answer else None
    )
    await cluster.settle()
    records = [orjson.loads(line) for line in journal.lines]
    changes = [(record["cause"], record["correlation_id"]) for record in records if record["kind"] == "leadership"]
    (let_in,) = [change for change in changes if change[0] == "alter_partition"]
    before, after = changes[: changes.index(let_in)], changes[changes.index(let_in) + 1 :]
    assert before[-1] == after[0] == after[-1]
    assert after[0][0] == "broker_failed"
    assert let_in[1] != after[0][1]
    assert_journal_folds_to(cluster.active.term.state, journal)


async def test_topics_of_many_groups_are_deleted_with_all_that_is_left_of_them(cluster: Cluster) -> None:
    await populate(cluster)
    cluster.create_topic("other", *([number % 4 + 1] for number in range(PARTITIONS)))
    await cluster.settle()
    cluster.write(Create(path=f"{paths.partition(tp('other', 3))}/left_by_hand"))
    cluster.request_deletion("orders")
    cluster.request_deletion("other")
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("orders")))
    assert not cluster.exists(paths.topic(TopicName("other")))
    assert cluster.zk.tree.children(paths.DELETE_TOPICS) == ()
    assert not any(broker.logs for broker in cluster.brokers.values())
    assert_sound(cluster)


async def test_a_reassignment_of_many_groups_comes_to_its_end(cluster: Cluster) -> None:
    await populate(cluster)
    targets = {tp("orders", n): [(n + step) % 4 + 1 for step in (1, 2, 3)] for n in range(PARTITIONS)}
    cluster.request_reassignment(targets)
    await cluster.settle()
    await cluster.replicate()
    assert {partition: cluster.list_replicas(partition) for partition in targets} == targets
    assert not cluster.exists(paths.REASSIGN_PARTITIONS)
    assert_sound(cluster)
