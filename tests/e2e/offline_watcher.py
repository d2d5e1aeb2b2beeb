"""Runs inside the toolbox: finds the partitions without a live leader at the worst moment.

A leader lives if it is registered in ZooKeeper and accepts connections at the address that its name had when it
registered: the resolver may need many seconds for the name of a deleted pod. Arguments: ZooKeeper's connect string; a
file that keeps it running while it exists, with a look every tenth of a second; and a file that it makes after the
first look. Prints the partitions and the longest time between two looks, as JSON.
"""

import json
import socket
import sys
import time
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


class Brokers:
    """The registered brokers; the address of each is resolved once for each registration."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._addresses: dict[int, tuple[str, int]] = {}

    def alive(self) -> set[int]:
        return {int(name) for name in self._client.get_children("/brokers/ids") if self._accepts(name)}

    def _accepts(self, broker: str) -> bool:
        try:
            with socket.create_connection(self._address(broker), timeout=0.5):
                return True
        except (OSError, NoNodeError):
            return False

    def _address(self, broker: str) -> tuple[str, int]:
        data, stat = self._client.get(f"/brokers/ids/{broker}")
        if stat.czxid not in self._addresses:
            registered = json.loads(data)
            self._addresses[stat.czxid] = (socket.gethostbyname(registered["host"]), registered["port"])
        return self._addresses[stat.czxid]


def offline(client: KazooClient, alive: set[int]) -> list[str]:
    found = []
    for topic in client.get_children("/brokers/topics"):
        try:
            partitions = client.get_children(f"/brokers/topics/{topic}/partitions")
            states = [client.get_async(f"/brokers/topics/{topic}/partitions/{each}/state") for each in partitions]
            for partition, state in zip(partitions, states, strict=True):
                if json.loads(state.get()[0])["leader"] not in alive:
                    found.append(f"{topic}-{partition}")
        except NoNodeError:
            continue  # it is being made or deleted
    return found


def main() -> None:
    connect, go_on, has_begun = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    client = KazooClient(connect)
    client.start()
    brokers = Brokers(client)
    worst: list[str] = []
    away_s, looked_at = 0.0, time.monotonic()
    while go_on.exists():
        worst = max(worst, offline(client, brokers.alive()), key=len)
        away_s, looked_at = max(away_s, time.monotonic() - looked_at), time.monotonic()
        has_begun.touch()
        time.sleep(0.1)
    sys.stdout.write(json.dumps({"away_s": away_s, "partitions": worst}))


main()
