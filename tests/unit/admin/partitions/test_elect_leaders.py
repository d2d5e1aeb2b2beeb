"""ElectLeaders: the elected leaders, and the error code of each partition without one."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.model.ids import TopicPartition
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp

PREFERRED, UNCLEAN = 0, 1


def request(election: int, *partitions: TopicPartition, everything: bool = False) -> ElectLeadersRequest:
    asked = tuple(
        TopicPartitions(topic=WireTopicName(each.topic), partitions=(i32(each.partition),)) for each in partitions
    )
    return ElectLeadersRequest(
        election_type=i8(election),
        topic_partitions=None if everything else asked,
        timeout=i32Timedelta.parse(timedelta(seconds=1)),
    )


async def codes(cluster: Cluster, asked: ElectLeadersRequest) -> dict[TopicPartition, ErrorCode]:
    response = await cluster.request(asked)
    return {
        tp(topic.topic, result.partition_id): result.error_code
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    """`moved` is led by 2 though 1 is preferred and in sync, `fine` by its preferred replica."""
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("moved", [1, 2])
        cluster.create_topic("fine", [2, 3])
        await cluster.settle()
        cluster.kill_broker(1)
        await cluster.settle()
        cluster.start_broker(1)
        await cluster.replicate()
        yield cluster


async def test_the_preferred_replica_leads_again(served: Cluster) -> None:
    assert await codes(served, request(PREFERRED, tp("moved"), tp("fine"))) == {
        tp("moved"): ErrorCode.none,
        tp("fine"): ErrorCode.election_not_needed,
    }
    assert served.leadership(tp("moved")) == (1, [2, 1])
    assert_sound(served)


async def test_of_all_partitions_only_those_are_answered_that_needed_an_election(served: Cluster) -> None:
    assert await codes(served, request(PREFERRED, everything=True)) == {tp("moved"): ErrorCode.none}


async def test_of_all_partitions_those_that_brokers_do_not_know_are_not_answered(served: Cluster) -> None:
    served.create_topic("waiting", [9])
    await served.settle()
    assert await codes(served, request(UNCLEAN, everything=True)) == {}
    assert await codes(served, request(UNCLEAN, tp("waiting"))) == {
        tp("waiting"): ErrorCode.eligible_leaders_not_available
    }


async def test_a_preferred_replica_that_cannot_lead_is_named(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    response = await served.request(request(PREFERRED, tp("moved")))
    (result,) = response.replica_election_results[0].partition_result
    assert result.error_code is ErrorCode.preferred_leader_not_available
    assert "1" in result.error_message


async def test_what_is_not_there_or_on_its_way_out_is_not_elected(served: Cluster) -> None:
    served.kill_broker(3)
    served.request_deletion("fine")
    await served.settle()
    assert await codes(served, request(PREFERRED, tp("ghost"), tp("moved", 7), tp("fine"))) == {
        tp("ghost"): ErrorCode.unknown_topic_or_partition,
        tp("moved", 7): ErrorCode.unknown_topic_or_partition,
        tp("fine"): ErrorCode.invalid_topic_exception,
    }


async def test_an_unclean_leader_is_elected_where_a_person_asks_for_it_whatever_the_topic_says(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    served.kill_broker(2)
    await served.settle()
    served.start_broker(1)
    await served.settle()
    assert served.leadership(tp("moved")) == (-1, [2])
    assert await codes(served, request(UNCLEAN, tp("moved"), tp("fine"))) == {
        tp("moved"): ErrorCode.none,
        tp("fine"): ErrorCode.election_not_needed,
    }
    assert served.leadership(tp("moved")) == (1, [1])
    assert int(served.state(tp("moved")).leader_and_isr.leader_recovery_state) == 1
    assert_sound(served)


async def test_an_unclean_election_takes_a_replica_in_sync_where_there_is_one(served: Cluster) -> None:
    assert await codes(served, request(UNCLEAN, everything=True)) == {}, "every leader is alive"


async def test_where_nobody_is_alive_nobody_is_elected(served: Cluster) -> None:
    served.kill_broker(1)
    served.kill_broker(2)
    await served.settle()
    assert await codes(served, request(UNCLEAN, tp("moved"))) == {tp("moved"): ErrorCode.eligible_leaders_not_available}


async def test_an_unknown_kind_of_election_is_refused(served: Cluster) -> None:
    before = served.zk.tree.zxid
    response = await served.request(request(5, tp("moved")))
    assert response.error_code is ErrorCode.invalid_request
    assert served.zk.tree.zxid == before


async def test_a_partition_that_stands_twice_is_elected_once(served: Cluster) -> None:
    before = served.state(tp("moved")).leader_and_isr.leader_epoch
    assert await codes(served, request(PREFERRED, tp("moved"), tp("moved"))) == {tp("moved"): ErrorCode.none}
    assert served.state(tp("moved")).leader_and_isr.leader_epoch == before + 1
