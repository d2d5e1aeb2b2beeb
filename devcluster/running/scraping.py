"""Asks a process on this machine over HTTP, and scrapes its metrics."""

from http.client import HTTPResponse
from ssl import SSLContext
from typing import cast
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from devcluster.running.places import LOOPBACK

_ANSWER_S = 60
"""Much longer than a busy machine needs, because callers take a late answer for a failure."""


def open_locally(asked: str | Request, *, timeout_s: float = _ANSWER_S, tls: SSLContext | None = None) -> HTTPResponse:
    """Open a URL of this machine. Raises OSError.

    A proxy in the environment (`http_proxy`) is not asked, because it cannot reach 127.0.0.1 here.
    """
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=tls))
    return cast(HTTPResponse, opener.open(asked, timeout=timeout_s))


def scrape(port: int, name: str, address: str = LOOPBACK) -> float | None:
    """Return the value of a metric, by its name and labels as exposed; None if it is missing. Raises OSError."""
    with open_locally(f"http://{address}:{port}/metrics") as answer:
        return find_value(answer.read().decode(), name)


def find_value(exposed: str, name: str) -> float | None:
    """Return the value of a metric in what /metrics says; None if it is missing."""
    values = [float(line.split()[1]) for line in exposed.splitlines() if line.split()[0] == name]
    return values[0] if values else None
