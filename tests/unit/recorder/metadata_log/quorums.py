"""A quorum as one server that is its only broker and its leader: real connections, and a log that a test makes up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from kio.index import load_request_schema
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.describe_quorum.v2 import DescribeQuorumResponse
from kio.schema.describe_quorum.v2.response import Listener, Node, PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v16 import FetchResponse
from kio.schema.fetch.v16.response import (
    EpochEndOffset,
    FetchableTopicResponse,
    LeaderIdAndEpoch,
    SnapshotId,
)
from kio.schema.fetch.v16.response import PartitionData as FetchedPartition
from kio.schema.fetch_snapshot.v0 import FetchSnapshotResponse
from kio.schema.fetch_snapshot.v0.response import LeaderIdAndEpoch as SnapshotLeader
from kio.schema.fetch_snapshot.v0.response import PartitionSnapshot, TopicSnapshot
from kio.schema.fetch_snapshot.v0.response import SnapshotId as SentSnapshotId
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64, u16
from kio.static.protocol import ResponsePayload

from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.controller.loop.clock import SystemClock
from controller_core.model.ids import BrokerId as NodeId
from controller_core.model.ids import ControllerEpoch
from controller_core.model.snapshot import Controller
from controller_core.recorder.metadata_log.following import MetadataLog
from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head

FETCH, VERSIONS, QUORUM, SNAPSHOT = 1, 18, 55, 59
NO_TIME: Final = i32Timedelta.parse(timedelta())
_NAME: Final = TopicName("__cluster_metadata")
_PIECE_BYTES: Final = 64
_WAIT_S: Final = 0.02


@dataclass
class Quorum:
    """A quorum: the requests to it, and its answers."""

    leader: int = 101
    epoch: int = 1
    log: list[tuple[int, int, bytes]] = field(default_factory=list)
    """First and last offset of each batch, and its bytes."""
    decided: int = 0
    """The high watermark."""
    start: int = 0
    """The first offset that the log still has."""
    most_batches: int | None = None
    """The maximum number of batches in one answer."""
    snapshot: tuple[int, int, bytes] | None = None
    """The snapshot: its end, the epoch of its end, and its bytes."""
    diverging: tuple[int, int] | None = None
    """The epoch and offset at which the log differs from the fetched one. It is said once."""
    refusals: list[ErrorCode] = field(default_factory=list)
    """The errors of the next fetches."""
    quorum_code: ErrorCode = ErrorCode.none
    tells_listeners: bool = True
    voters: tuple[int, ...] | None = None
    """The voters whose addresses are known. None: the leader alone."""
    fetched_from: list[int] = field(default_factory=list)
    address: Address = field(default_factory=lambda: Address("127.0.0.1", 1))

    @property
    def end(self) -> int:
        return self.log[-1][1] + 1 if self.log else 0

    def append(self, *batches: bytes, count: int = 1, is_decided: bool = True) -> None:
        """Appends batches that begin at the end and have so many records each."""
        for content in batches:
            self.log.append((self.end, self.end + count - 1, content))
        if is_decided:
            self.decided = self.end

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (content := await read_frame(reader)) is not None:
                head = read_request_head(content)
                request = decode_request(load_request_schema(head.api_key, head.api_version), content)
                writer.write(encode_response(await self.answer(head.api_key, request), head.correlation_id))
                await writer.drain()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()

    async def answer(self, api_key: int, request: Any) -> ResponsePayload:
        match api_key:
            case 1:
                partition = request.topics[0].partitions[0]
                if self.end <= partition.fetch_offset and self.decided == self.end:
                    await asyncio.sleep(_WAIT_S)
                return self._answer_fetch(int(partition.fetch_offset), int(partition.current_leader_epoch))
            case 18:
                return _versions()
            case 55:
                return self._answer_describe()
            case _:
                return self._piece(int(request.topics[0].partitions[0].position))

    def _answer_fetch(self, offset: int, epoch: int) -> FetchResponse:
        self.fetched_from.append(offset)
        code = self.refusals.pop(0) if self.refusals else ErrorCode.none
        if code is ErrorCode.none and epoch != self.epoch:
            code = ErrorCode.fenced_leader_epoch if epoch < self.epoch else ErrorCode.unknown_leader_epoch
        diverging = None
        if code is ErrorCode.none:
            diverging, self.diverging = self.diverging, None
        needs_snapshot = self.snapshot is not None and offset < self.start
        following = [content for first, _, content in self.log if first >= offset]
        found = b"".join(following[: self.most_batches])
        is_plain = code is ErrorCode.none and not needs_snapshot and diverging is None
        partition = FetchedPartition(
            partition_index=i32(0),
            error_code=code,
            high_watermark=i64(self.decided),
            diverging_epoch=EpochEndOffset(epoch=i32(diverging[0]), end_offset=i64(diverging[1]))
            if diverging
            else EpochEndOffset(),
            current_leader=LeaderIdAndEpoch(leader_id=BrokerId(self.leader), leader_epoch=i32(self.epoch)),
            snapshot_id=SnapshotId(end_offset=i64(self.snapshot[0]), epoch=i32(self.snapshot[1]))
            if self.snapshot and needs_snapshot
            else SnapshotId(),
            aborted_transactions=None,
            records=found if is_plain else b"",  # type: ignore[arg-type] # bytes are what is written
        )
        return FetchResponse(
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            responses=(FetchableTopicResponse(topic_id=UUID(int=1), partitions=(partition,)),),
        )

    def _answer_describe(self) -> DescribeQuorumResponse:
        partition = PartitionData(
            partition_index=i32(0),
            error_code=self.quorum_code,
            error_message=None,
            leader_id=BrokerId(self.leader),
            leader_epoch=i32(self.epoch),
            high_watermark=i64(self.decided),
            current_voters=(),
            observers=(),
        )
        listener = Listener(name="CONTROLLER", host=self.address.host, port=u16(self.address.port))
        listeners = (listener,) if self.tells_listeners else ()
        return DescribeQuorumResponse(
            error_code=ErrorCode.none,
            error_message=None,
            topics=(TopicData(topic_name=_NAME, partitions=(partition,)),),
            nodes=tuple(Node(node_id=BrokerId(voter), listeners=listeners) for voter in self.voters or (self.leader,)),
        )

    def _piece(self, position: int) -> FetchSnapshotResponse:
        assert self.snapshot is not None
        end, epoch, content = self.snapshot
        piece = PartitionSnapshot(
            index=i32(0),
            error_code=ErrorCode.none,
            snapshot_id=SentSnapshotId(end_offset=i64(end), epoch=i32(epoch)),
            current_leader=SnapshotLeader(leader_id=BrokerId(self.leader), leader_epoch=i32(self.epoch)),
            size=i64(len(content)),
            position=i64(position),
            unaligned_records=content[position : position + _PIECE_BYTES],  # type: ignore[arg-type] # as above
        )
        return FetchSnapshotResponse(
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            topics=(TopicSnapshot(name=_NAME, partitions=(piece,)),),
        )


def _versions() -> ApiVersionsResponse:
    spoken = {FETCH: (4, 17), VERSIONS: (0, 4), QUORUM: (0, 2), SNAPSHOT: (0, 1)}
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            ApiVersion(api_key=i16(key), min_version=i16(oldest), max_version=i16(newest))
            for key, (oldest, newest) in spoken.items()
        ),
        throttle_time=NO_TIME,
    )


@asynccontextmanager
async def serve(quorum: Quorum) -> AsyncIterator[None]:
    """The quorum at its address."""
    server = await asyncio.start_server(quorum.serve, "127.0.0.1", 0)
    quorum.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield
    finally:
        server.close()


def log_of(quorum: Quorum) -> MetadataLog:
    """Return a log that follows the quorum."""
    return MetadataLog(RequestClient([quorum.address], negotiates=True, timeout_ms=2_000), lambda _: None, "here")


def looker_of(
    quorum: Quorum, *, since: tuple[int, int, int] | None = None, timeout_ms: int = 10_000
) -> MetadataLogLooker:
    """`since`: offset, controller and epoch of the last event of a journal."""
    return MetadataLogLooker(
        log_of(quorum),
        SystemClock(),
        cluster_id="here",
        timeout_ms=timeout_ms,
        since=None if since is None else (since[0], Controller(id=NodeId(since[1]), epoch=ControllerEpoch(since[2]))),
    )
