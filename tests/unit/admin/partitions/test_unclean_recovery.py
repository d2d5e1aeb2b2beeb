"""A requested unclean election: the controller first asks brokers for their log end offsets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from controller_core.model.ids import LeaderEpoch
from controller_core.model.metadata import LogEnd
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings
from tests.unit.admin.partitions.test_elect_leaders import UNCLEAN, codes, request

ORDERS = tp("orders")
TIMEOUT_MS = ProcessSettings().unclean_recovery_timeout_ms


def begin(cluster: Cluster) -> "asyncio.Task[Any]":
    """Asks for an unclean election of the topic, and does not wait for the answer."""
    return asyncio.create_task(cluster.active.answer(request(UNCLEAN, ORDERS)))


def code(answer: "asyncio.Task[Any]") -> ErrorCode:
    """Return the error code in the answer about the one partition."""
    (topic,) = answer.result().replica_election_results
    (result,) = topic.partition_result
    error: ErrorCode = result.error_code
    return error


def give_log(cluster: Cluster, broker: int, epoch: int, offset: int) -> None:
    """The broker's log of the topic ends there."""
    cluster.broker(broker).log_epochs[ORDERS] = [LogEnd(LeaderEpoch(epoch), offset)]


@pytest.fixture
async def offline() -> AsyncIterator[Cluster]:
    """Make a cluster in which only replica 3 of 1, 2 and 3 was in sync, and it is dead; 2 has a longer log than 1."""
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2, 3])
        await cluster.settle()
        for broker in (1, 2, 3):
            cluster.kill_broker(broker)
            await cluster.settle()
        cluster.start_brokers(1, 2)
        await cluster.settle()
        assert cluster.leadership(ORDERS) == (-1, [3])
        give_log(cluster, 1, 0, 100)
        give_log(cluster, 2, 1, 200)
        yield cluster


async def test_the_replica_with_the_longest_log_leads(offline: Cluster) -> None:
    assert await codes(offline, request(UNCLEAN, ORDERS)) == {ORDERS: ErrorCode.none}
    assert offline.leadership(ORDERS) == (2, [2])
    assert int(offline.state(ORDERS).leader_and_isr.leader_recovery_state) == 1
    assert_sound(offline)


async def test_other_events_do_not_wait_for_the_brokers(offline: Cluster) -> None:
    offline.broker(2).hang()
    answer = begin(offline)
    offline.create_topic("meanwhile", [1])
    await offline.settle(passing_ms=1000)
    assert offline.leadership(tp("meanwhile")) == (1, [1])
    assert (offline.leadership(ORDERS), answer.done()) == ((-1, [3]), False)
    offline.broker(2).resume()
    await offline.settle(passing_ms=1000)
    assert answer.done()
    assert offline.leadership(ORDERS) == (2, [2])


async def test_a_broker_that_says_nothing_is_not_waited_for_beyond_the_timeout(offline: Cluster) -> None:
    offline.broker(2).cut_off()
    answer = begin(offline)
    await offline.settle(passing_ms=TIMEOUT_MS)
    assert answer.done()
    assert offline.leadership(ORDERS) == (1, [1])
    offline.broker(2).reconnect()
    await offline.settle()
    assert_sound(offline)


async def test_who_was_in_sync_and_returns_meanwhile_leads_and_nothing_is_lost(offline: Cluster) -> None:
    offline.broker(2).cut_off()
    answer = begin(offline)
    await offline.settle(passing_ms=1000)
    offline.start_broker(3)
    offline.broker(2).reconnect()
    await offline.settle()
    assert code(answer) is ErrorCode.election_not_needed
    assert offline.leadership(ORDERS)[0] == 3
    assert int(offline.state(ORDERS).leader_and_isr.leader_recovery_state) == 0


async def test_two_who_ask_at_once_get_one_election(offline: Cluster) -> None:
    before = offline.state(ORDERS).leader_and_isr.leader_epoch
    answers = begin(offline), begin(offline)
    await offline.settle()
    assert sorted(map(code, answers)) == [ErrorCode.none, ErrorCode.election_not_needed]
    assert offline.state(ORDERS).leader_and_isr.leader_epoch == before + 1


async def test_a_topic_that_is_deleted_meanwhile_is_not_elected(offline: Cluster) -> None:
    offline.broker(2).cut_off()
    answer = begin(offline)
    offline.request_deletion("orders")
    await offline.settle(passing_ms=TIMEOUT_MS)
    assert code(answer) in (ErrorCode.invalid_topic_exception, ErrorCode.unknown_topic_or_partition)


async def test_a_controller_that_resigns_meanwhile_says_so_and_elects_nobody(offline: Cluster) -> None:
    offline.broker(2).cut_off()
    answer = begin(offline)
    await offline.settle(passing_ms=1000)
    await offline.active.stop()
    await offline.settle()
    assert code(answer) is ErrorCode.not_controller
    assert offline.leadership(ORDERS) == (-1, [3])


async def test_nobody_is_asked_where_that_is_set(offline: Cluster) -> None:
    await offline.active.stop()
    offline.settings = replace(offline.settings, unclean_recovery_timeout_ms=0)
    await offline.serve(1001)
    assert await codes(offline, request(UNCLEAN, ORDERS)) == {ORDERS: ErrorCode.none}
    assert offline.leadership(ORDERS) == (1, [1])


async def test_an_unclean_election_that_the_topic_allows_asks_nobody(offline: Cluster) -> None:
    """Asking would delay an election that is to be over at once, and that is not one person's decision about one
    moment."""
    offline.alter_config("topics/orders", {"unclean.leader.election.enable": "true"})
    await offline.settle(passing_ms=0)
    assert offline.leadership(ORDERS) == (1, [1])
