"""What a process on this machine says at its port for Prometheus."""

import urllib.request

from devcluster.running.places import LOOPBACK


def scraped(port: int, name: str, address: str = LOOPBACK) -> float | None:
    """The value of a metric, by its name and labels as they are written; None where it is not there. Raises OSError."""
    with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    values = [float(line.split()[1]) for line in lines if line.split()[0] == name]
    return values[0] if values else None
