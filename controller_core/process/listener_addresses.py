"""Listeners as options of a command say them, `LISTENER://HOST:PORT`: for a controller's process and a broker's alike.

A listener's name that is no security protocol stands for PLAINTEXT, which is all that is served.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from controller_core.controller.sending.broker_requests import SECURITY_PROTOCOL_IDS
from controller_core.model.metadata import Endpoint

LISTENER_NAME: Final = "[A-Za-z0-9_.-]+"
_LISTENER: Final = re.compile(
    rf"(?P<listener>{LISTENER_NAME})://(?P<host>\[[0-9A-Fa-f:]+\]|[^:/\s,]+):(?P<port>\d{{1,5}})"
)
_EVERY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - what nobody can connect to, nothing binds to it

H = TypeVar("H", bound=Hashable)


def parse_listener(text: str) -> Endpoint:
    """`PLAINTEXT://HOST:PORT` as an endpoint.

    Listeners have their names in capitals, and addresses of IPv6 no brackets, as brokers register them.

    Raises `ValueError` that says what is expected."""
    match = _LISTENER.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not of the form PLAINTEXT://HOST:PORT")
    name = match["listener"].upper()
    if name in SECURITY_PROTOCOL_IDS and name != "PLAINTEXT":
        raise ValueError(f"{name} is not served yet: use a PLAINTEXT listener")
    host = match["host"].strip("[]")
    return Endpoint(listener=name, security_protocol="PLAINTEXT", host=host, port=int(match["port"]))


def require_apart(listen: Iterable[str], *, remedy: str = "give each its own") -> None:
    """That listeners can be read, and each has its own name and address. Raises `ValueError` otherwise."""
    bound = [parse_listener(text) for text in listen]
    for name in _twice(endpoint.listener for endpoint in bound):
        raise ValueError(f"listener {name} is given twice")
    for host, port in _twice((endpoint.host, endpoint.port) for endpoint in bound):
        raise ValueError(f"two listeners have the address {host}:{port}: {remedy}")


def require_readable(advertise: Iterable[str]) -> None:
    """That what is advertised can be read; where there is one listener, the address alone may be given. Raises
    `ValueError`."""
    for text in advertise:
        parse_listener(text if "://" in text else f"PLAINTEXT://{text}")


def advertised(binds: Iterable[Endpoint], advertise: Iterable[str]) -> tuple[Endpoint, ...]:
    """Where others are to connect, for each listener in the order of `binds`.

    Raises `ValueError` for what is advertised and not listened on."""
    endpoints = {bind.listener: bind for bind in binds}
    for text in advertise:
        is_address_alone = "://" not in text and len(endpoints) == 1
        endpoint = parse_listener(f"{next(iter(endpoints))}://{text}" if is_address_alone else text)
        if endpoint.listener not in endpoints:
            raise ValueError(f"{endpoint.listener} is advertised and not listened on: add it with listen")
        endpoints[endpoint.listener] = endpoint
    return tuple(endpoints.values())


def unreachable(endpoints: Iterable[Endpoint]) -> Endpoint | None:
    """The first that nobody can connect to, as it stands for all addresses of a machine."""
    return next((endpoint for endpoint in endpoints if endpoint.host in _EVERY_ADDRESS), None)


def _twice(items: Iterable[H]) -> list[H]:
    return [item for item, count in Counter(items).items() if count > 1]
