"""The metrics of a broker's process: its counters, and the state of its replicas."""

import re
import socket
from contextlib import AsyncExitStack
from typing import cast

import aiohttp
import pytest

from controller_core.model.ids import BrokerEpoch, LeaderEpoch
from controller_core.wire.messages import ErrorCode
from replica_broker.counters import BrokerCounters
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.node import Node
from replica_broker.process.metrics import ReplicaGauges, begin_metrics
from replica_broker.process.settings import load_settings
from replica_broker.replicas.errors import NotEnoughReplicas
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import Asked, Fetch
from simulation.fast_loop import run_fast
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.process.test_settings import GIVEN
from tests.unit.replica_broker.replicas.cluster import ORDERS, ORDERS_1, A, B, Cluster, play
from tests.unit.replica_broker.replicas.messages import batch
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas


def value(cluster: Cluster, name: str, **labels: str) -> float | None:
    """Return a value from a scrape of A."""
    return cluster.counters[A].registry.get_sample_value(f"kontroller_broker_{name}", labels)


def observe(cluster: Cluster) -> None:
    """Add the gauges of A's replicas, too."""
    node = Node(id=A, cluster_id="cluster", epoch=BrokerEpoch(7))
    gauges = ReplicaGauges(node=node, replicas=cluster.running[A], directories=cluster.directories[A])
    cluster.counters[A].registry.register(gauges)


def test_what_comes_in_and_goes_out_is_counted_by_who_sends_and_who_asks() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.create(B, A, topic_partition=ORDERS_1)
        await cluster.produce(A, "one", "two")
        await cluster.produce(B, "three", to=ORDERS_1)
        await cluster.consume(A, 0)
        size_bytes = len(batch("one", "two"))
        assert value(cluster, "received_messages_total") == 2
        assert value(cluster, "received_bytes_total", sender="producer") == size_bytes
        assert value(cluster, "received_bytes_total", sender="leader") == len(batch("three"))
        assert value(cluster, "sent_bytes_total", receiver="follower") == size_bytes
        assert value(cluster, "sent_bytes_total", receiver="consumer") == size_bytes

    run_fast(play(scenario, Cluster()))


def test_refusals_are_counted_by_api_and_error() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        with pytest.raises(NotEnoughReplicas):
            await cluster.produce(A, "one")
        stale = Asked(offset=0, max_bytes=1, current_leader_epoch=LeaderEpoch(9))
        answers = await cluster.running[A].fetch(Fetch(partitions={ORDERS: stale}))
        assert answers[ORDERS].error_code is ErrorCode.unknown_leader_epoch
        refused = "refused_partitions_total"
        assert value(cluster, refused, api="Produce", error="not_enough_replicas") == 1
        assert value(cluster, refused, api="Fetch", error="unknown_leader_epoch") == 1

    run_fast(play(scenario, Cluster()))


def test_changes_of_the_isr_are_counted_and_what_they_left_is_seen() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        cluster.start(A, B)
        observe(cluster)
        await cluster.create(A, B)
        await cluster.create(B, A, topic_partition=ORDERS_1)
        assert (value(cluster, "partitions"), value(cluster, "leaders"), value(cluster, "registered")) == (2, 1, 1)
        assert value(cluster, "under_replicated_partitions") == 0
        cluster.network.cut(A, B)
        await cluster.produce(A, "one", acks=1)
        await cluster.wait_until_in_sync(A, A)
        assert (value(cluster, "isr_shrinks_total"), value(cluster, "isr_expands_total")) == (1, 0)
        assert value(cluster, "under_replicated_partitions") == 1
        assert value(cluster, "under_min_isr_partitions") == 1
        cluster.network.mend()
        await cluster.wait_until_in_sync(A, A, B)
        assert (value(cluster, "isr_shrinks_total"), value(cluster, "isr_expands_total")) == (1, 1)
        assert value(cluster, "under_min_isr_partitions") == 0

    run_fast(play(scenario, Cluster()))


def test_a_log_directory_that_failed_is_counted_and_the_size_of_the_others_is_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        observe(cluster)
        await cluster.create(A)
        await cluster.create(A, topic_partition=ORDERS_1)
        await cluster.produce(A, "one")
        await cluster.produce(A, "one", to=ORDERS_1)
        assert value(cluster, "log_bytes", directory="/data/1") == len(batch("one"))
        cluster.disks[A].broken = lambda path: path.startswith("/data/1/")
        with pytest.raises(Exception, match="its log directory failed"):
            await cluster.produce(A, "two")
        assert (value(cluster, "offline_log_directories"), value(cluster, "offline_replicas")) == (1, 1)
        assert value(cluster, "leaders") == 1
        assert value(cluster, "log_bytes", directory="/data/1") is None
        assert value(cluster, "log_bytes", directory="/data/2") == len(batch("one"))

    run_fast(play(scenario, Cluster()))


async def test_they_are_served_on_loopback_where_a_port_is_given() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = load_settings({**GIVEN, "metrics_port": port})
    assert settings.metrics_host == "127.0.0.1"
    directories = LogDirectories(SimulatedDisk(), ["/data/1"], broker_id=A)
    replicas = cast(Replicas, StandInReplicas())
    gauges = ReplicaGauges(node=Node(id=A, cluster_id="cluster"), replicas=replicas, directories=directories)
    counters = BrokerCounters()
    counters.count_request("Produce")
    async with AsyncExitStack() as stack:
        await begin_metrics(stack, settings, counters, gauges)
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
    assert 'kontroller_broker_requests_total{api="Produce"} 1.0' in text
    assert "kontroller_broker_registered 0.0" in text
    names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert all(name.startswith(("kontroller_broker_", "kontroller_refused_")) for name in names)
    for port in ("kafka", "http"):
        assert f'kontroller_refused_total{{port="{port}",reason="tls"}} 0.0' in text


async def test_without_a_port_nothing_is_served_and_nothing_looked_at() -> None:
    counters = BrokerCounters()
    async with AsyncExitStack() as stack:
        await begin_metrics(stack, load_settings(GIVEN), counters, cast(ReplicaGauges, None))
    assert counters.registry.get_sample_value("kontroller_broker_registered") is None
