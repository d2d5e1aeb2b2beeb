"""The guarantees of a follower's link to its leader, for the simulated link and the one over TCP alike.

The TCP link gets a broker's own answers to Fetch, OffsetForLeaderEpoch and ListOffsets, so both ends use the same
messages. tests/real/replica_broker tests them beside stock brokers.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
from kio.schema.list_offsets.v9.request import ListOffsetsRequest
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest
from kio.static.protocol import ResponsePayload

from controller_core.model.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head
from controller_core.wire.messages import (
    ErrorCode,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from replica_broker.membership.node import Node
from replica_broker.replicas.following.tcp_leader_link import TcpLeaderLink
from replica_broker.replicas.requests import EARLIEST, LATEST, Asked, EpochEnd, Fetch
from replica_broker.replicas.seams import LeaderAnswerUnreadable, LeaderEndpoint, LeaderLink, LeaderUnreachable
from replica_broker.serving.fetch import VERSIONS as FETCH_VERSIONS
from replica_broker.serving.fetch import on_fetch
from replica_broker.serving.offsets.leader_epochs import on_offset_for_leader_epoch
from replica_broker.serving.offsets.list_offsets import on_list_offsets
from simulation.replicas.leader_links import SimulatedLeaderLink
from tests.unit.replica_broker.replicas.cluster import ORDERS, ORDERS_ID, A, B, Cluster
from tests.unit.replica_broker.replicas.messages import values_in

EPOCH, OLDER, NEWER = LeaderEpoch(1), LeaderEpoch(0), LeaderEpoch(2)
ASKED = Asked(offset=0, max_bytes=1 << 20, current_leader_epoch=EPOCH, topic_id=ORDERS_ID)


@dataclass(slots=True)
class Leader:
    """A broker that leads one partition in epoch 1, and the link of a follower to it."""

    cluster: Cluster
    link: LeaderLink

    def fetch(self, asked: Asked, *, max_wait_ms: int = 0) -> Fetch:
        return Fetch(partitions={ORDERS: asked}, replica_id=B, min_bytes=1, max_wait_ms=max_wait_ms)


@pytest.fixture(params=["simulated", "tcp"])
async def leader(request: pytest.FixtureRequest) -> AsyncIterator[Leader]:
    cluster = Cluster()
    cluster.start(A)
    await cluster.create(A, B)
    await cluster.produce(A, "one", "two", acks=1)
    await cluster.elect(A, [A, B])
    async with AsyncExitStack() as cleanup:
        cleanup.push_async_callback(cluster.close)
        link: LeaderLink
        if request.param == "simulated":
            link = SimulatedLeaderLink(cluster.network, B, A)
        else:
            port = await serve(cluster, cleanup)
            link = TcpLeaderLink(LeaderEndpoint(A, "127.0.0.1", port), client_id="follower")
        cleanup.push_async_callback(link.close)
        yield Leader(cluster, link)


async def serve(cluster: Cluster, cleanup: AsyncExitStack) -> int:
    """Start a listener that answers for A; return its port."""
    node = Node(id=A, cluster_id="cluster")
    node.metadata.update(make_metadata())

    async def answer_leader(content: bytes) -> ResponsePayload:
        replicas = cluster.running[A]
        head = read_request_head(content)
        match head.api_key:
            case 1:
                return await on_fetch(node, "PLAINTEXT", replicas, FETCH_VERSIONS.decode(content, head.api_version))
            case 2:
                return await on_list_offsets(replicas, decode_request(ListOffsetsRequest, content))
            case _:
                return on_offset_for_leader_epoch(replicas, decode_request(OffsetForLeaderEpochRequest, content))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (content := await read_frame(reader)) is not None and A in cluster.running:
                response = await answer_leader(content)
                writer.write(encode_response(response, read_request_head(content).correlation_id))
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    cleanup.callback(server.close)
    port: int = server.sockets[0].getsockname()[1]
    return port


def make_metadata() -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        partition_index=ORDERS.partition,
        controller_epoch=ControllerEpoch(1),
        leader=A,
        leader_epoch=EPOCH,
        isr=(A, B),
        zk_version=1,  # type: ignore[arg-type]
        replicas=(A, B),
    )
    topic = UpdateMetadataTopicState(topic_name=ORDERS.topic, topic_id=ORDERS_ID, partition_states=(state,))
    return UpdateMetadataRequest(
        controller_id=A,
        controller_epoch=ControllerEpoch(1),
        broker_epoch=BrokerEpoch(-1),
        topic_states=(topic,),
        live_brokers=(),
    )


async def test_a_fetch_brings_whole_batches_and_the_high_watermark(leader: Leader) -> None:
    answer = (await leader.link.fetch(leader.fetch(ASKED)))[ORDERS]
    assert answer.error_code is ErrorCode.none
    assert values_in(answer.records) == ["one", "two"]
    assert (answer.high_watermark, answer.log_start_offset, answer.diverging_epoch) == (0, 0, None)


async def test_a_partition_whose_topic_has_no_id_is_fetched_by_its_name(leader: Leader) -> None:
    asked = ASKED._replace(topic_id=None)
    answer = (await leader.link.fetch(leader.fetch(asked)))[ORDERS]
    assert (values_in(answer.records), answer.high_watermark) == (["one", "two"], 0)
    parted = asked._replace(offset=7, last_fetched_epoch=OLDER)
    assert (await leader.link.fetch(leader.fetch(parted)))[ORDERS].diverging_epoch == EpochEnd(OLDER, 2)
    await leader.link.fetch(leader.fetch(asked._replace(offset=2, last_fetched_epoch=OLDER)))
    assert leader.cluster.partition(A).followers[B].end_offset == 2


async def test_what_a_follower_asks_for_says_what_it_has(leader: Leader) -> None:
    answer = (await leader.link.fetch(leader.fetch(ASKED._replace(offset=2, last_fetched_epoch=OLDER))))[ORDERS]
    assert (answer.records, answer.high_watermark) == (b"", 2)
    assert leader.cluster.partition(A).followers[B].end_offset == 2


async def test_a_fetch_waits_for_what_comes_next(leader: Leader) -> None:
    fetching = asyncio.create_task(_fetch_records(leader, leader.fetch(ASKED._replace(offset=2), max_wait_ms=20_000)))
    await leader.cluster.wait_until(lambda: leader.cluster.partition(A).followers[B].end_offset == 2)
    await leader.cluster.produce(A, "three", acks=1)
    assert values_in(await fetching) == ["three"]


async def _fetch_records(leader: Leader, asked: Fetch) -> bytes:
    return (await leader.link.fetch(asked))[ORDERS].records


@pytest.mark.parametrize(
    ("epoch", "error"), [(OLDER, ErrorCode.fenced_leader_epoch), (NEWER, ErrorCode.unknown_leader_epoch)]
)
async def test_another_epoch_is_refused_by_each_request(leader: Leader, epoch: LeaderEpoch, error: ErrorCode) -> None:
    fetched = await leader.link.fetch(leader.fetch(ASKED._replace(current_leader_epoch=epoch)))
    assert fetched[ORDERS].error_code is error
    assert await leader.link.ends_of_epochs({ORDERS: (epoch, OLDER)}, B) == {ORDERS: error}
    assert await leader.link.list_offsets({ORDERS: (epoch, LATEST)}, B) == {ORDERS: error}


async def test_a_log_that_parts_from_the_leader_s_is_told_where(leader: Leader) -> None:
    asked = leader.fetch(ASKED._replace(offset=7, last_fetched_epoch=OLDER))
    answer = (await leader.link.fetch(asked))[ORDERS]
    assert (answer.diverging_epoch, answer.records) == (EpochEnd(OLDER, 2), b"")


async def test_an_offset_outside_of_the_log_is_out_of_range(leader: Leader) -> None:
    answer = (await leader.link.fetch(leader.fetch(ASKED._replace(offset=7))))[ORDERS]
    assert answer.error_code is ErrorCode.offset_out_of_range


async def test_epochs_have_ends_and_logs_begin_and_end(leader: Leader) -> None:
    assert await leader.link.ends_of_epochs({ORDERS: (EPOCH, OLDER)}, B) == {ORDERS: EpochEnd(OLDER, 2)}
    assert await leader.link.ends_of_epochs({ORDERS: (EPOCH, NEWER)}, B) == {ORDERS: EpochEnd(LeaderEpoch(-1), -1)}
    assert await leader.link.list_offsets({ORDERS: (EPOCH, LATEST)}, B) == {ORDERS: 2}
    assert await leader.link.list_offsets({ORDERS: (EPOCH, EARLIEST)}, B) == {ORDERS: 0}


async def test_a_link_that_is_closed_fails_what_is_in_flight_and_what_comes(leader: Leader) -> None:
    fetching = asyncio.create_task(_fetch_records(leader, leader.fetch(ASKED._replace(offset=2), max_wait_ms=20_000)))
    await leader.cluster.wait_until(lambda: leader.cluster.partition(A).followers[B].end_offset == 2)
    await leader.link.close()
    with pytest.raises(LeaderUnreachable):
        await fetching
    with pytest.raises(LeaderUnreachable):
        await leader.link.fetch(leader.fetch(ASKED))
    await leader.link.close()


async def test_a_leader_that_is_gone_is_unreachable(leader: Leader) -> None:
    await leader.link.fetch(leader.fetch(ASKED))
    replicas = leader.cluster.running[A]
    leader.cluster.network.stop(A)
    with pytest.raises(LeaderUnreachable):
        await leader.link.fetch(leader.fetch(ASKED))
    await replicas.close()


async def test_who_is_no_leader_is_unreachable_or_not_understood() -> None:
    async def chatter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"\x00\x00\x00\x08 no, no!")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(chatter, "127.0.0.1", 0)
    async with server:
        link = TcpLeaderLink(LeaderEndpoint(A, "127.0.0.1", server.sockets[0].getsockname()[1]), client_id="x")
        with pytest.raises(LeaderAnswerUnreadable):
            await link.fetch(Fetch(partitions={ORDERS: ASKED}, replica_id=B))
        await link.close()
    gone = TcpLeaderLink(LeaderEndpoint(A, "127.0.0.1", 1), client_id="x")
    with pytest.raises(LeaderUnreachable, match="no connection"):
        await gone.fetch(Fetch(partitions={ORDERS: ASKED}, replica_id=B))
