"""ZooKeeper's statistics in its answer to `mntr`: requests, notifications, znodes read, watches.

Reads and writes are counted for each name at the root of the tree, including those of one request for many znodes. Each
cluster therefore has its own chroot, and is counted alone.
"""

import socket
from dataclasses import dataclass

_WATCHES_FIRED = ("created", "deleted", "changed", "children")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperCounters:
    """Counts since the server's start, or of a period; `watches` are the present ones."""

    requests: int
    """All requests of clients, including the pings of their sessions."""
    znodes_read: int
    """Reads of the data, children or existence of a znode that exists."""
    notifications: int
    """Watches that fired, one for each notified client."""
    watches: int

    def subtract(self, before: "ZooKeeperCounters") -> "ZooKeeperCounters":
        return ZooKeeperCounters(
            requests=self.requests - before.requests,
            znodes_read=self.znodes_read - before.znodes_read,
            notifications=self.notifications - before.notifications,
            watches=self.watches,
        )


def counters(port: int, chroot: str) -> ZooKeeperCounters:
    """Read the counters of a server. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"mntr")
        return counters_of(b"".join(iter(lambda: connection.recv(65_536), b"")).decode(), chroot)


def counters_of(answer: str, chroot: str) -> ZooKeeperCounters:
    """Return the counters in an answer to `mntr`."""
    said = dict(line.split("\t", 1) for line in answer.splitlines() if "\t" in line)
    return ZooKeeperCounters(
        requests=int(said["zk_packets_received"]),
        znodes_read=int(said.get(f"zk_cnt_{chroot.strip('/')}_read_per_namespace", 0)),
        notifications=sum(int(said[f"zk_sum_node_{kind}_watch_count"]) for kind in _WATCHES_FIRED),
        watches=int(said["zk_watch_count"]),
    )
