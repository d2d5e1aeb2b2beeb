"""A leader's handling of answers to its ISR changes that come late, or that confirm something else."""

import asyncio
from dataclasses import dataclass, field

import pytest

from controller_core.model.ids import LeaderEpoch, PartitionEpoch
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriteUncertain, IsrWritten
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import A, B, Cluster, play


@dataclass(slots=True)
class Slow:
    """An `IsrWriter` that answers at the test's signal, and its answers."""

    asked: list[IsrToWrite] = field(default_factory=list)
    answers: list["asyncio.Future[IsrWritten | IsrRefused]"] = field(default_factory=list)

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        self.asked.append(isr)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


def make_written(isr: IsrToWrite, *, leader_epoch: int | None = None, partition_epoch: int = 1) -> IsrWritten:
    return IsrWritten(
        leader_epoch=isr.leader_epoch if leader_epoch is None else LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        isr=isr.isr,
    )


def slow_cluster() -> tuple[Cluster, Slow]:
    writer = Slow()
    return Cluster(isr_writer=lambda _: writer), writer


def test_one_change_is_under_way_at_a_time() -> None:
    cluster, writer = slow_cluster()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        await cluster.produce(A, "one", acks=1)
        await asyncio.sleep(300)
        assert [isr.isr for isr in writer.asked] == [(A,)]
        assert (cluster.partition(A).isr, cluster.partition(A).high_watermark) == ((A, B), 0)
        writer.answers[0].set_result(make_written(writer.asked[0]))
        await cluster.wait_until_in_sync(A, A)
        assert (cluster.partition(A).partition_epoch, cluster.partition(A).high_watermark) == (1, 1)

    run_fast(play(scenario, cluster))


def test_an_answer_of_an_earlier_epoch_of_the_leader_counts_for_nothing() -> None:
    cluster, writer = slow_cluster()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        await cluster.produce(A, "one", acks=1)
        await cluster.wait_until(lambda: bool(writer.asked))
        await cluster.elect(A, [A, B])
        writer.answers[0].set_result(make_written(writer.asked[0], partition_epoch=9))
        await asyncio.sleep(1)
        assert (cluster.partition(A).isr, cluster.partition(A).partition_epoch) == ((A, B), 1)
        assert cluster.partition(A).high_watermark == 0

    run_fast(play(scenario, cluster))


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(1, 1), (0, -1)])
def test_a_state_of_another_leader_or_from_before_is_not_taken_over(leader_epoch: int, partition_epoch: int) -> None:
    cluster, writer = slow_cluster()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        await cluster.produce(A, "one", acks=1)
        await cluster.wait_until(lambda: bool(writer.asked))
        answer = make_written(writer.asked[0], leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        writer.answers[0].set_result(answer)
        await asyncio.sleep(100)
        assert cluster.partition(A).isr == (A, B)
        assert cluster.partition(A).high_watermark == 0
        assert len(writer.asked) == 1

    run_fast(play(scenario, cluster))


def test_what_is_uncertain_is_written_again_as_it_was_until_another_epoch_begins() -> None:
    cluster, writer = slow_cluster()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        for number in range(3):
            await cluster.wait_until(lambda number=number: len(writer.asked) == number + 1)  # type: ignore[misc]
            writer.answers[-1].set_exception(IsrWriteUncertain("lost"))
        assert writer.asked[0] == writer.asked[1] == writer.asked[2]
        await cluster.elect(A, [A, B])
        before = len(writer.asked)
        await asyncio.sleep(5)
        assert len(writer.asked) == before

    run_fast(play(scenario, cluster))


def test_a_leader_that_is_refused_for_good_proposes_nothing_more_in_that_epoch() -> None:
    cluster, writer = slow_cluster()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        await cluster.produce(A, "one", acks=1)
        await cluster.wait_until(lambda: bool(writer.asked))
        writer.answers[0].set_result(IsrRefused(error_code=ErrorCode.invalid_update_version))
        await asyncio.sleep(300)
        assert len(writer.asked) == 1
        assert (cluster.partition(A).isr, cluster.partition(A).high_watermark) == ((A, B), 0)
        await cluster.elect(A, [A])
        assert cluster.partition(A).high_watermark == 1

    run_fast(play(scenario, cluster))
