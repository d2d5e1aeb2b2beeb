"""Scrapes a metric from a process on this machine."""

import urllib.request

from devcluster.running.places import LOOPBACK

_ANSWER_S = 60
"""Much longer than a busy machine needs, because callers take a late answer for a failure."""


def scrape(port: int, name: str, address: str = LOOPBACK) -> float | None:
    """Return the value of a metric, by its name and labels as exposed; None if it is missing. Raises OSError."""
    with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=_ANSWER_S) as answer:
        return find_value(answer.read().decode(), name)


def find_value(exposed: str, name: str) -> float | None:
    """Return the value of a metric in what /metrics says; None if it is missing."""
    values = [float(line.split()[1]) for line in exposed.splitlines() if line.split()[0] == name]
    return values[0] if values else None
