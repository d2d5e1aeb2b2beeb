"""Parses listeners on the command line, `LISTENER://HOST:PORT`, for processes of controllers and brokers.

The protocol of a listener is the one that the brokers' properties map its name to, or its name itself; without
properties, PLAINTEXT."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from controller_core.model.metadata import Endpoint
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.broker_properties import PLAINTEXT, PROTOCOLS, SecuredBrokers

LISTENER_NAME: Final = "[A-Za-z0-9_.-]+"
_LISTENER: Final = re.compile(
    rf"(?P<listener>{LISTENER_NAME})://(?P<host>\[[0-9A-Fa-f:]+\]|[^:/\s,]+):(?P<port>\d{{1,5}})"
)
_EVERY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to

H = TypeVar("H", bound=Hashable)
ProtocolOf: TypeAlias = Callable[[str], str]
"""Returns the security protocol of a listener by its name. Raises `ValueError`, which says what to change."""


def find_protocol_without_properties(listener: str) -> str:
    """Return the protocol of a listener without properties. See `ProtocolOf`."""
    if listener in PROTOCOLS and listener != PLAINTEXT:
        raise ValueError(f"{listener} needs --properties, which say how it is secured")
    return PLAINTEXT


def make_protocol_lookup(properties: Path | None) -> ProtocolOf:
    """Return the protocols of a file of properties. Without a file, names stand for themselves."""
    if properties is None:
        return find_protocol_without_properties

    def protocol_of(listener: str) -> str:
        try:
            said = SecuredBrokers(properties).read()
            protocol = said.protocol_of(listener)
        except InvalidProperties as error:
            raise ValueError(f"--properties: {error}") from error
        if protocol is None and said.maps_listeners:
            raise ValueError(
                f"listener.security.protocol.map in --properties does not have {listener}: add {listener}:PROTOCOL"
            )
        return protocol or PLAINTEXT

    return protocol_of


def parse_listener(text: str, protocol_of: ProtocolOf = find_protocol_without_properties) -> Endpoint:
    """Parse `PLAINTEXT://HOST:PORT`.

    Names become upper case, and IPv6 addresses lose their brackets, as brokers register them. Raises `ValueError`,
    which says what is expected."""
    match = _LISTENER.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not of the form PLAINTEXT://HOST:PORT")
    name, host = match["listener"].upper(), match["host"].strip("[]")
    return Endpoint(listener=name, security_protocol=protocol_of(name), host=host, port=int(match["port"]))


def require_apart(listen: Iterable[str], *, remedy: str = "give each its own") -> None:
    """Require that listeners are readable, and that each has its own name and address. Raises `ValueError`."""
    bound = [parse_listener(text, _ignore_protocol) for text in listen]
    for name in _find_duplicates(endpoint.listener for endpoint in bound):
        raise ValueError(f"listener {name} is given twice")
    for host, port in _find_duplicates((endpoint.host, endpoint.port) for endpoint in bound):
        raise ValueError(f"two listeners have the address {host}:{port}: {remedy}")


def require_readable(advertise: Iterable[str]) -> None:
    """Require that advertised addresses are readable. With one listener, the address alone is enough. Raises
    `ValueError`."""
    for text in advertise:
        parse_listener(text if "://" in text else f"PLAINTEXT://{text}", _ignore_protocol)


def list_advertised_endpoints(binds: Iterable[Endpoint], advertise: Iterable[str]) -> tuple[Endpoint, ...]:
    """Return the addresses that others connect to, for each listener in the order of `binds`.

    Raises `ValueError` if an address is advertised without a listener."""
    endpoints = {bind.listener: bind for bind in binds}
    for text in advertise:
        is_address_alone = "://" not in text and len(endpoints) == 1
        endpoint = parse_listener(f"{next(iter(endpoints))}://{text}" if is_address_alone else text, _ignore_protocol)
        if endpoint.listener not in endpoints:
            raise ValueError(f"{endpoint.listener} is advertised, but there is no such listener: add it with listen")
        protocol = endpoints[endpoint.listener].security_protocol
        endpoints[endpoint.listener] = replace(endpoint, security_protocol=protocol)
    return tuple(endpoints.values())


def list_hosts(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    """Return the hosts of endpoints in order, without those that stand for all addresses of a machine."""
    return tuple(sorted({endpoint.host for endpoint in endpoints}.difference(_EVERY_ADDRESS)))


def find_unreachable(endpoints: Iterable[Endpoint]) -> Endpoint | None:
    """Return the first endpoint that nobody can connect to, because it stands for all addresses of a machine."""
    return next((endpoint for endpoint in endpoints if endpoint.host in _EVERY_ADDRESS), None)


def _ignore_protocol(_: str) -> str:
    """Return any protocol, for listeners whose protocol does not matter."""
    return PLAINTEXT


def _find_duplicates(items: Iterable[H]) -> list[H]:
    return [item for item, count in Counter(items).items() if count > 1]
