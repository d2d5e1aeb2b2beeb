"""Compares the throughput of the listener's TLS streams with asyncio's own, as a ratio in one run.

`python -m bench.tls_streams`: a client in a process of its own sends and receives 256 MiB by each, in turn, several
times. Above 1 the listener's are faster.
"""

import asyncio
import socket
import ssl
import statistics
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from controller_core.wire.codecs.frames import PIECE_BYTES
from controller_core.wire.connections.small_reads import READ_AHEAD_BYTES
from controller_core.wire.connections.tls_transport import TlsTransport
from devcluster.clusters.certificates import Authority, CertificateFiles

BYTES: Final = 256 << 20
ROUNDS: Final = 5
_PIECE: Final = bytes(PIECE_BYTES)


def _client(port: int, authority: Path, is_sending: bool) -> None:
    context = ssl.create_default_context(cafile=authority)
    with (
        socket.create_connection(("localhost", port)) as tcp,
        context.wrap_socket(tcp, server_hostname="localhost") as tls,
    ):
        buffer, left = bytearray(PIECE_BYTES), BYTES
        while left:
            left -= tls.send(_PIECE) if is_sending else tls.recv_into(buffer)
        if is_sending:
            tls.recv(1)


async def _open_own(
    context: ssl.SSLContext, accepted: socket.socket
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    tls = TlsTransport(context, protocol)
    await loop.connect_accepted_socket(lambda: tls, accepted)
    await tls.shake_hands()
    return reader, asyncio.StreamWriter(tls, protocol, reader, loop)


async def _open_of_asyncio(
    context: ssl.SSLContext, accepted: socket.socket
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted, ssl=context)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _measure_s(authority: Path, shown: CertificateFiles, *, is_own: bool, is_sending: bool) -> float:
    """Return the processor seconds of the server for all bytes. `is_sending`: the client sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_server(("localhost", 0)) as listening:
        client = get_context("spawn").Process(target=_client, args=(listening.getsockname()[1], authority, is_sending))
        client.start()
        accepted, _ = await asyncio.to_thread(listening.accept)
    accepted.setblocking(False)
    reader, writer = await (_open_own if is_own else _open_of_asyncio)(context, accepted)
    writer.transport.set_write_buffer_limits(high=1)
    began_s, left = time.process_time(), BYTES
    while left:
        if is_sending:
            left -= len(await reader.read(min(left, PIECE_BYTES)))
        else:
            writer.write(_PIECE)
            await writer.drain()
            left -= len(_PIECE)
    took_s = time.process_time() - began_s
    writer.write(b"1")
    await asyncio.to_thread(client.join)
    writer.transport.abort()
    return took_s


async def main() -> None:
    """Print the throughput of both, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        shown = authority.issue("server", "localhost")
        for is_sending, name in ((False, "answers"), (True, "requests")):
            took_s: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(ROUNDS):
                for is_own, each in took_s.items():
                    each.append(await _measure_s(authority.certificate, shown, is_own=is_own, is_sending=is_sending))
            own, other = (BYTES / (1 << 20) / statistics.median(took_s[is_own]) for is_own in (True, False))
            sys.stdout.write(
                f"{name}: {own:.0f} MiB a processor second, asyncio's {other:.0f}, ratio {own / other:.2f}\n"
            )


if __name__ == "__main__":
    asyncio.run(main())
