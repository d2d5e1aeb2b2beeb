"""Fake brokers: registrations in ZooKeeper, and a server behind them that returns a test's answers.

A controller takes them for brokers as long as something listens at their address. With them tests have brokers with
features that no broker of Kafka 3.9 has, and brokers that answer nonsense.
"""

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias

from kazoo.client import KazooClient

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint, FeatureRange
from controller_core.wire.codecs.frames import RequestHead, encode_response, read_request_head
from controller_core.zk import codecs, paths
from devcluster.stand_ins.told_versions import API_VERSIONS, OF_KAFKA_3_9, make_versions_response

_HOST: Final = "127.0.0.1"
_LENGTH_BYTES: Final = 4

Answer: TypeAlias = Callable[[RequestHead], bytes | None]
"""Returns the whole response frame to a request; None closes the connection."""


def is_there(head: RequestHead) -> bytes | None:
    """Answer ApiVersions with the versions of Kafka 3.9; close the connection at other requests, which are then retried
    forever.
    """
    return make_version_answer(OF_KAFKA_3_9)(head)


def make_version_answer(newest: Mapping[int, int]) -> Answer:
    """Return an answer that only states the newest version of each API, and closes the connection at anything else."""

    def answer(head: RequestHead) -> bytes | None:
        return (
            encode_response(make_versions_response(newest), head.correlation_id)
            if head.api_key == API_VERSIONS
            else None
        )

    return answer


@contextmanager
def stand_in_broker(answer: Answer = is_there) -> Iterator[int]:
    """Run a server with these answers, and yield its port. Any number of brokers may be registered there."""

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while len(length := self.rfile.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
                frame = answer(read_request_head(self.rfile.read(int.from_bytes(length, "big"))))
                if frame is None:
                    return
                self.wfile.write(frame)

    with socketserver.ThreadingTCPServer((_HOST, 0), Connection) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, name="stand-in broker")
        serving.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            serving.join()


def register(
    client: KazooClient, number: int, port: int, features: Mapping[str, tuple[int, int]] | None = None
) -> None:
    """Register a broker at a port, or rewrite its registration, which ends with the client's session.

    `features`: the lowest and the highest supported level of each.
    """
    endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host=_HOST, port=port)
    ranges = {name: FeatureRange(min_version=low, max_version=high) for name, (low, high) in (features or {}).items()}
    broker = Broker(id=BrokerId(number), epoch=BrokerEpoch(0), endpoints=(endpoint,), features=ranges)
    path, data = paths.broker(broker.id), codecs.encode_broker(broker)
    if client.exists(path):
        client.set(path, data)
    else:
        client.create(path, data, ephemeral=True, makepath=True)


def unregister(client: KazooClient, number: int) -> None:
    """Remove a registration."""
    client.delete(paths.broker(BrokerId(number)))
