"""Streams that read little in advance, so that a connection takes no more memory than is counted for it.

asyncio's own streams receive up to 256 KiB at once, and keep it until somebody reads it. Here each read takes at most
`READ_BYTES`, into a buffer that all connections of a thread share, because it is emptied before the next read.
"""

import asyncio
import socket
import threading
from typing import Final

READ_BYTES: Final = 16 * 1024
READ_AHEAD_BYTES: Final = 16 * 1024
"""Bytes that a stream reads in advance. It pauses when it has twice as many, so it holds at most three times as many."""


class _Scratch(threading.local):
    """The buffers of a thread. Nothing stays in them after the call that filled them."""

    def __init__(self) -> None:
        self.received = memoryview(bytearray(READ_BYTES))
        self.decrypted = memoryview(bytearray(READ_BYTES))


SCRATCH: Final = _Scratch()


class SmallReads(asyncio.StreamReaderProtocol, asyncio.BufferedProtocol):
    """The protocol of a pair of streams, which receives by the shared buffer."""

    def get_buffer(self, sizehint: int) -> memoryview:
        return SCRATCH.received

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(SCRATCH.received[:nbytes])  # type: ignore[arg-type]  # the stream copies it


async def open_streams(connected: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the streams of a connected socket, which belongs to them from now on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES, loop=loop)
    transport, protocol = await loop.connect_accepted_socket(lambda: SmallReads(reader, loop=loop), connected)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
