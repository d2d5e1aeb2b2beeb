"""Says under which of the brokers' listeners the controller is not found.

Brokers and clients that look for it there find nobody, wait, and say nothing of why. Each name is said once when a
process starts and once in a term, and no more than `MOST_NAMES`, as a registration may have any; the metric has what is
the case now.
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
from controller_core.zk.registered_brokers import registered_brokers
from controller_core.zk.session import ZkNode, ZkSession

MOST_NAMES: Final = 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UnservedListeners:
    """What was said already."""

    listeners: ControllerListeners
    _said: set[str] = field(default_factory=set)

    def report(self, brokers: Iterable[Broker]) -> None:
        """Logs the listeners of these brokers that are not served, and what to change."""
        for name, remedy in self.listeners.unserved(brokers).items():
            if name not in self._said and len(self._said) < MOST_NAMES:
                self._said.add(name)
                log.error("the controller is not found under a listener of the brokers", listener=name, remedy=remedy)

    def report_all(self, brokers: Collection[Broker]) -> None:
        """As `report`, of all brokers there are; also names in the settings that none of them has."""
        self.report(brokers)
        for name in self.listeners.unknown(brokers) if brokers else ():
            log.error(
                "no broker has a listener that the controller is set up for",
                listener=name,
                remedy="--listen, --control-plane-listener and --client-listener take the names that brokers register",
            )


async def report_at_start(zk: ZkSession, listeners: ControllerListeners) -> None:
    """As `report_all`, of those who are registered now, also for a process that will stand by. Raises `ZkError`."""
    ids = sorted(await registered_brokers(zk))
    nodes = await zk.read_many([paths.broker(broker_id) for broker_id in ids])
    UnservedListeners(listeners).report_all(list(_readable(zip(ids, nodes, strict=True))))


def _readable(registrations: Iterable[tuple[BrokerId, ZkNode | None]]) -> Iterator[Broker]:
    for broker_id, node in registrations:
        try:
            if node is not None:
                yield codecs.decode_broker(broker_id, node)
        except MalformedZnode as error:
            log.debug("unreadable broker registration, reported once this process has the role", error=str(error))
