"""Errors for listeners of brokers under which the controller is not found.

Brokers and clients that look for the controller there wait without a message. Each name is logged once when a process
starts and once in a term, and at most `MOST_NAMES` of them, because a registration may contain any name. The metric has
the present number.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.model.ids import BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.session import ZkNode, ZkSession

MOST_NAMES: Final = 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UnservedListeners:
    """The listeners that were reported already."""

    listeners: ControllerListeners
    _said: set[str] = field(default_factory=set)

    def report(self, brokers: Iterable[Broker]) -> None:
        """Log the listeners of these brokers that are not served, with the remedies."""
        for name, remedy in self.listeners.find_unserved(brokers).items():
            if name not in self._said and len(self._said) < MOST_NAMES:
                self._said.add(name)
                log.error("the controller is not found under a listener of the brokers", listener=name, remedy=remedy)

    def report_all(self, brokers: Collection[Broker]) -> None:
        """Like `report`, for all present brokers. Log also names in the settings that no broker has."""
        self.report(brokers)
        for name in self.listeners.find_unknown(brokers) if brokers else ():
            log.error(
                "no broker has a listener that the controller is set up for",
                listener=name,
                remedy="--listen, --control-plane-listener, --client-listener and --hide-from take the names that brokers "
                "register",
            )


async def report_at_start(zk: ZkSession, listeners: ControllerListeners) -> None:
    """Like `report_all`, for the present registrations, also in a process that will stand by. Raises `ZkError`."""
    ids = sorted(await read_registered_brokers(zk))
    nodes = await zk.read_many([paths.broker(broker_id) for broker_id in ids])
    UnservedListeners(listeners).report_all(list(_readable(zip(ids, nodes, strict=True))))


def _readable(registrations: Iterable[tuple[BrokerId, ZkNode | None]]) -> Iterator[Broker]:
    for broker_id, node in registrations:
        try:
            if node is not None:
                yield codecs.decode_broker(broker_id, node)
        except MalformedZnode as error:
            log.debug("unreadable broker registration, reported once this process has the role", error=str(error))
