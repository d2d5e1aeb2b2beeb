"""What tests wait for again and again, in one set of words. Each wait gives up as `wait_until` does."""

from collections.abc import Sequence

from devcluster.clients.znodes import ClusterZnodes
from devcluster.running.processes import ManagedProcess, wait_until


def wait_until_served(znodes: ClusterZnodes, topic: str, partitions: Sequence[int]) -> None:
    """Waits until every partition has a leader, and all its replicas are in sync."""
    wait_until(lambda: znodes.is_served(topic, partitions), f"every replica of {topic} is in sync")


def wait_until_led(znodes: ClusterZnodes, topic: str, partition: int, leader: int) -> None:
    """Waits until this broker leads the partition; -1: until nobody does."""
    wait_until(lambda: znodes.leader(topic, partition) == leader, f"{leader} leads {topic}-{partition}")


def wait_until_logged(process: ManagedProcess, text: str) -> None:
    """Waits until the log of the process has the text, from any of its lives."""
    wait_until(lambda: text in process.log_path.read_text(errors="replace"), f"{process.name} logs {text!r}")
