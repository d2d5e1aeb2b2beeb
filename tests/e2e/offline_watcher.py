"""Runs inside the toolbox: which partitions had no live leader at the worst moment.

A leader lives when it is registered in ZooKeeper and accepts connections. Arguments: ZooKeeper's connect string, a file
that is there for as long as it shall go on, with a tenth of a second between two looks, and one that it makes when it has
looked once. Prints how often it looked, and the partitions, as JSON.
"""

import json
import socket
import sys
import time
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


def accepts(client: KazooClient, broker: str) -> bool:
    try:
        data, _ = client.get(f"/brokers/ids/{broker}")
        address = json.loads(data)
        with socket.create_connection((address["host"], address["port"]), timeout=0.5):
            return True
    except (OSError, NoNodeError):
        return False


def offline(client: KazooClient) -> list[str]:
    alive = {int(name) for name in client.get_children("/brokers/ids") if accepts(client, name)}
    found = []
    for topic in client.get_children("/brokers/topics"):
        try:
            for partition in client.get_children(f"/brokers/topics/{topic}/partitions"):
                data, _ = client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
                if json.loads(data)["leader"] not in alive:
                    found.append(f"{topic}-{partition}")
        except NoNodeError:
            continue  # it is being made or deleted
    return found


def main() -> None:
    connect, go_on, has_begun = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    client = KazooClient(connect)
    client.start()
    worst: list[str] = []
    looks = 0
    while go_on.exists():
        worst = max(worst, offline(client), key=len)
        looks += 1
        has_begun.touch()
        time.sleep(0.1)
    sys.stdout.write(json.dumps({"looks": looks, "partitions": worst}))


main()
