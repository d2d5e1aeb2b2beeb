"""Servers that speak as much of Kafka's protocol as their script has."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import chain
from typing import Final

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker
from kio.schema.types import BrokerId
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import ResponsePayload

from controller_core.client.transport.request_client import Address
from controller_core.wire.codecs.frames import encode_response, read_frame, read_request_head
from controller_core.wire.requests.api_versions import SERVER_VERSIONS

METADATA: Final = 3
API_VERSIONS: Final = 18
NO_TIME: Final = i32Timedelta.parse(timedelta())
NOBODY: Final = Address("127.0.0.1", 1)
"""An address on which no server listens."""
_NEWEST_METADATA: Final = 11
"""The newest Metadata of Kafka 2.8."""


class Server:
    """A server that names the controller, and answers other requests with the next item of its script.

    Bytes are sent as they are, None closes the connection instead, and b"" sends no answer at all. A Metadata version
    that Kafka 2.8 does not know closes the connection, as there. ApiVersions is answered with all versions.
    """

    def __init__(self) -> None:
        self.address = NOBODY
        self.controllers: list[Server] = []
        """The controllers that it names, question by question. The last one stays."""
        self.script: list[ResponsePayload | bytes | None] = []
        self.asked: list[int] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.is_silent = False
        """True if it answers no requests."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while (content := await read_frame(reader)) is not None:
            head = read_request_head(content)
            if self.is_silent:
                self.asked.append(head.api_key)
                continue
            # a client may ask for versions at any time, so tests do not count these requests
            if (head.api_key, head.api_version) == (API_VERSIONS, SERVER_VERSIONS.__version__):
                writer.write(encode_response(spoken(dict.fromkeys(range(80), (0, 99))), head.correlation_id))
                continue
            self.asked.append(head.api_key)
            if head.api_key == METADATA and head.api_version > _NEWEST_METADATA:
                break
            reply = self._metadata() if head.api_key == METADATA else self.script.pop(0)
            if reply is None:
                break
            writer.write(reply if isinstance(reply, bytes) else encode_response(reply, head.correlation_id))
        writer.close()

    def _metadata(self) -> MetadataResponse:
        controller = self.controllers.pop(0) if len(self.controllers) > 1 else next(iter(self.controllers), None)
        brokers = [] if controller is None else [controller.address]
        return MetadataResponse(
            throttle_time=NO_TIME,
            brokers=tuple(
                MetadataResponseBroker(node_id=BrokerId(1000), host=host, port=i32(port), rack=None)
                for host, port in brokers
            ),
            cluster_id="c",
            controller_id=BrokerId(1000),
            topics=(),
        )


def spoken(ranges: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    """Return the ApiVersions answer of a server with these versions."""
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            ApiVersion(api_key=i16(key), min_version=i16(oldest), max_version=i16(newest))
            for key, (oldest, newest) in ranges.items()
        ),
        throttle_time=NO_TIME,
    )


Servers = tuple[Server, Server, Server]


@asynccontextmanager
async def three_servers() -> AsyncIterator[Servers]:
    """Three servers that listen; each says that the first one is the controller."""
    started = (Server(), Server(), Server())
    listening = []
    for server in started:
        listening.append(await asyncio.start_server(server.serve, "127.0.0.1", 0))
        server.address = Address("127.0.0.1", listening[-1].sockets[0].getsockname()[1])
        server.controllers = [started[0]]
    yield started
    for each in listening:
        each.close()
    for writer in chain.from_iterable(server.writers for server in started):
        writer.close()
