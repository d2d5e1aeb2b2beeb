"""A broker on loopback that refuses the first batch of its partition, as one that is just becoming the leader.

Like Kafka's, it then takes any first sequence number of a producer, and no gap after it.
"""

import select
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

TOPIC: Final = "topic"
_PRODUCE, _METADATA, _API_VERSIONS, _INIT_PRODUCER_ID = 0, 3, 18, 22
_VERSIONS: Final = ((_PRODUCE, 3, 7), (1, 4, 4), (_METADATA, 1, 1), (_API_VERSIONS, 0, 0), (_INIT_PRODUCER_ID, 0, 0))
"""Api keys, each with its oldest and newest version. Clients want Fetch, too, but never send it."""
_UNSUPPORTED_VERSION, _NOT_LEADER, _OUT_OF_ORDER = 35, 6, 45
_LONGEST_HOLD_S: Final = 1.0
"""The time until the first answer, unless the client sends its next request earlier."""


class RefusingBroker(socketserver.ThreadingTCPServer):
    """The broker. `taken` are the sequence numbers of the messages that it took."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.bootstrap = "{}:{}".format(*self.server_address)
        self.taken: list[int] = []
        self.has_refused = False

    def take(self, sequence: int, count: int) -> int:
        """Take or refuse a batch. Return Kafka's code of the outcome."""
        if not self.has_refused:
            self.has_refused = True
            return _NOT_LEADER
        if self.taken and sequence != self.taken[-1] + 1:
            return _OUT_OF_ORDER
        self.taken += range(sequence, sequence + count)
        return 0


@contextmanager
def serve_refusing_broker() -> Iterator[RefusingBroker]:
    """Run a broker on a port of its own while the block runs."""
    with RefusingBroker() as broker:
        serving = threading.Thread(target=broker.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield broker
        finally:
            broker.shutdown()
            serving.join()


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while size := self.rfile.read(4):
            request = self.rfile.read(struct.unpack(">i", size)[0])
            key, version, correlation, client_id_size = struct.unpack_from(">hhih", request)
            answer = struct.pack(">i", correlation) + self._answer(key, version, request[10 + max(client_id_size, 0) :])
            self.wfile.write(struct.pack(">i", len(answer)) + answer)

    def _answer(self, key: int, version: int, body: bytes) -> bytes:
        broker = cast(RefusingBroker, self.server)
        if key == _API_VERSIONS:
            error = _UNSUPPORTED_VERSION if version else 0
            return struct.pack(">hi", error, len(_VERSIONS)) + b"".join(struct.pack(">hhh", *row) for row in _VERSIONS)
        if key == _METADATA:
            host, port = broker.bootstrap.split(":")
            node = struct.pack(">ii", 1, 1) + _string(host) + struct.pack(">ih", int(port), -1)
            topic = struct.pack(">iih", 1, 1, 0) + _string(TOPIC) + struct.pack(">?i", False, 1)
            return node + topic + struct.pack(">hiiiiii", 0, 0, 1, 1, 1, 1, 1)
        if key == _INIT_PRODUCER_ID:
            return struct.pack(">ihqh", 0, 0, 1, 0)
        if not broker.has_refused:
            select.select([self.connection], [], [], _LONGEST_HOLD_S)
        # The body has no transactional id, acks, a timeout, and one topic with one partition and one batch.
        (topic_size,) = struct.unpack_from(">h", body, 12)
        sequence, count = struct.unpack_from(">ii", body, 12 + 2 + topic_size + 12 + 53)
        partition = struct.pack(">iihqqq", 1, 0, broker.take(sequence, count), 0, -1, 0)
        return struct.pack(">i", 1) + _string(TOPIC) + partition + struct.pack(">i", 0)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
