"""A recorder whose log becomes unreadable while it is at work: it goes on by asking brokers, and stays with that."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16
from kio.static.protocol import ResponsePayload

from controller_core.client.transport.request_client import Address
from controller_core.journal.fold import fold
from controller_core.journal.reader import Record, read
from controller_core.journal.records import Line
from controller_core.process.recording.run import run_recorder
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.settings import load
from controller_core.recorder.event_numbers import read_position
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.scraping import scrape
from tests.unit.polling import quorum as asked
from tests.unit.recorder.metadata_log import logs, quorums
from tests.unit.recorder.metadata_log.followed import cluster
from tests.unit.recorder.metadata_log.test_unreadable import WHAT_IS_UNREADABLE

DEADLINE_S = 20


@dataclass
class Cluster:
    """A server that is the only broker and leads the quorum: its answers, and its log."""

    orders: asked.Topic = field(default_factory=lambda: asked.Topic([(1, 2)], topic_id=logs.ORDERS))
    brokers: asked.Quorum = field(default_factory=lambda: asked.Quorum(epoch=1))
    quorum: quorums.Quorum = field(default_factory=cluster)

    def __post_init__(self) -> None:
        self.brokers.topics["orders"] = self.orders

    def change(self, isr: tuple[int, ...], leader_epoch: int) -> None:
        """Change the partition as brokers show it."""
        self.orders.isr, self.orders.leader_epoch = isr, leader_epoch
        self.brokers.decided += 5

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # the test is over
            while (content := await read_frame(reader)) is not None:
                head = read_request_head(content)
                request = decode_request(load_request_schema(head.api_key, head.api_version), content)
                answer = await self._answer(head.api_key, head.api_version, request)
                writer.write(encode_response(answer, head.correlation_id))
        writer.close()

    async def _answer(self, api_key: int, version: int, request: Any) -> ResponsePayload:
        if api_key in (quorums.FETCH, quorums.SNAPSHOT) or (api_key, version) == (quorums.QUORUM, 2):
            return await self.quorum.answer(api_key, request)
        if (api_key, version) == (quorums.VERSIONS, 3):
            return _versions()
        return self.brokers._answer(api_key, request)


def _versions() -> ApiVersionsResponse:
    spoken = {quorums.FETCH: 17, asked.METADATA: 12, quorums.VERSIONS: 4, quorums.QUORUM: 2, quorums.SNAPSHOT: 1}
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(to)) for key, to in spoken.items()
        ),
        throttle_time=asked.NO_TIME,
    )


@asynccontextmanager
async def serve(cluster: Cluster) -> AsyncIterator[str]:
    server = await asyncio.start_server(cluster.serve, "127.0.0.1", 0)
    cluster.brokers.address = cluster.quorum.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield str(cluster.quorum.address)
    finally:
        server.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorder at work."""

    journal: Path
    metrics_port: int
    running: asyncio.Task[None]

    async def wait_until(self, is_so: Callable[[list[Line]], bool]) -> list[Line]:
        """The records without those of snapshots, once they are so."""
        async with asyncio.timeout(DEADLINE_S):
            while not is_so(lines := changes(self.journal)):
                assert not self.running.done(), self.running
                await asyncio.sleep(0.01)
        return lines

    async def metric(self, name: str) -> float | None:
        return await asyncio.to_thread(scrape, self.metrics_port, name)


@asynccontextmanager
async def record(bootstrap: str, journal: Path) -> AsyncIterator[Recording]:
    """Run a recorder until the end of the block, and kill it then."""
    port = reserve_port()
    given = {"bootstrap_server": bootstrap, "journal_directory": journal, "metrics_port": port, "look_interval_ms": 10}
    running = asyncio.create_task(run_recorder(load(RecorderProcessSettings, given)))
    try:
        yield Recording(journal=journal, metrics_port=port, running=running)
    finally:
        running.cancel()
        await asyncio.wait([running])
        release_port(port)


def changes(journal: Path) -> list[Line]:
    lines = [entry.line for entry in read(journal) if isinstance(entry, Record)]
    return [line for line in lines if not line.snapshot and not line.kind.startswith("snapshot")]


def begins(lines: list[Line]) -> int:
    return [line.kind for line in lines].count("recorder_started")


def offsets(lines: list[Line]) -> list[int | None]:
    return [read_position(line.correlation_id) for line in lines if line.kind == "leadership"]


@pytest.mark.parametrize("which", WHAT_IS_UNREADABLE)
async def test_it_asks_brokers_from_what_cannot_be_read_on_and_neither_loses_nor_repeats(
    tmp_path: Path, which: str
) -> None:
    cluster = Cluster()
    async with serve(cluster) as bootstrap:
        async with record(bootstrap, tmp_path) as followed:
            await followed.wait_until(lambda lines: begins(lines) == 1)
            cluster.quorum.append(logs.batch(8, logs.partition_change(0, isr=[1])))
            await followed.wait_until(lambda lines: offsets(lines) == [8])
            assert await followed.metric("kontroller_recorder_polls") == 0
        cluster.quorum.most_batches = 4  # a start reads the journal's end before it reaches the unreadable batch
        cluster.quorum.append(logs.batch(9, logs.partition_change(0, isr=[1, 2])))
        cluster.quorum.append(WHAT_IS_UNREADABLE[which][0])
        async with record(bootstrap, tmp_path) as again:
            lines = await again.wait_until(lambda lines: begins(lines) == 2)
            assert offsets(lines) == [8, 9]
            assert await again.metric("kontroller_recorder_polls") == 1
            cluster.change(isr=(2,), leader_epoch=2)
            await again.wait_until(lambda lines: offsets(lines) == [8, 9, None])
        async with record(bootstrap, tmp_path) as stays:
            await stays.wait_until(lambda lines: begins(lines) == 3)
            assert await stays.metric("kontroller_recorder_polls") == 1
            cluster.change(isr=(1, 2), leader_epoch=3)
            lines = await stays.wait_until(lambda lines: offsets(lines) == [8, 9, None, None])
    folded = fold(read(tmp_path))
    assert (folded.findings, folded.gaps) == ([], [])
    assert folded.image is not None
    assert folded.image.leaderships["orders", 0]["isr"] == [1, 2]
    assert [line.seq for line in lines] == sorted({line.seq for line in lines})
