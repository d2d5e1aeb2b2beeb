"""Reads, at most once a minute, of each KafkaCluster: disk usage and settings of brokers, and throttles without an owner.

As with moves, one reconciliation begins a reading if it is due, and the next one shows the result. Unknown values are
missing and never a failure: brokers of an older release, or a user without the right, leave them unknown.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import structlog

from controller_core.client.log_dirs.log_directories import LogDirectories, ask_log_directories
from controller_core.client.log_dirs.log_sizes import BrokerClient, OpenBroker
from controller_core.model.ids import BrokerId
from controller_core.model.settings.differences import Difference
from controller_core.model.snapshot import Snapshot
from controller_core.supervision import start_task
from controller_operator.clusters.cluster import Asking, Cluster
from controller_operator.kubernetes.object_store import Key, ObjectStore
from controller_operator.reconciling.measuring.asking import ask_brokers
from controller_operator.reconciling.measuring.readings import Measured, Readings
from controller_operator.reconciling.measuring.settings import ask_for_differences
from controller_operator.resources import PartitionReassignment

EVERY_S: Final = 60.0
TIMEOUT_S: Final = 20.0
"""Seconds for a whole reading. Later answers are ignored."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The last answers of brokers."""

    directories: Mapping[BrokerId, LogDirectories] | None = None
    """None: no broker was asked yet."""
    differences: tuple[Difference, ...] | None = None
    """The settings that differ between brokers or controller. None: no broker has returned its settings yet."""
    ownerless: frozenset[str] = frozenset()
    """The owners of recorded throttles whose objects are gone."""


NOTHING_FOUND: Final = Findings()


@dataclass(slots=True, kw_only=True)
class _Measured(Measured):
    found: Findings = NOTHING_FOUND


class ClusterMeter(Readings[_Measured]):
    """The disks and limits of Kafka clusters."""

    def __init__(
        self,
        open_broker: OpenBroker,
        tell: Callable[[Iterable[Key]], None],
        store: ObjectStore,
        namespaces: Collection[str] = (),
    ) -> None:
        """`tell` queues a KafkaCluster for reconciliation when its findings have changed. `namespaces`: those whose
        objects are in the store; empty: all."""
        super().__init__()
        self._open_broker = open_broker
        self._tell = tell
        self._store = store
        self._namespaces = namespaces

    def findings_of(self, key: Key, uid: str) -> Findings:
        """Return the findings about a KafkaCluster."""
        measured = self.find(key, uid)
        return NOTHING_FOUND if measured is None else measured.found

    def drop_owner(self, key: Key, uid: str, owner: str) -> None:
        """Drop an owner from the findings, because its throttle was removed since."""
        measured = self.find(key, uid)
        if measured is not None:
            measured.found = replace(measured.found, ownerless=measured.found.ownerless - {owner})

    def look(self, key: Key, uid: str, kafka: Cluster, view: Snapshot, asking: Asking) -> float:
        """Begin a reading if one is due. Return the seconds until the next one."""
        now_s = asyncio.get_running_loop().time()
        measured = self.find(key, uid) or self.put(key, _Measured(uid=uid, begun_at_s=-inf))
        if (left_s := measured.begun_at_s + EVERY_S - now_s) > 0:
            return left_s
        measured.begun_at_s = now_s
        reading = self._read(key, measured, kafka, view, asking)
        measured.work = start_task(reading, name=f"disks and limits of {key}", on_error=lambda _: None)
        return EVERY_S

    async def _read(self, key: Key, measured: _Measured, kafka: Cluster, view: Snapshot, asking: Asking) -> None:
        async def ask(_: BrokerId, client: BrokerClient) -> LogDirectories | None:
            return await ask_log_directories(client)

        answers = await ask_brokers(view.brokers, view, asking.listener, self._open_broker, ask, TIMEOUT_S)
        differences = await ask_for_differences(view, asking.listener, self._open_broker, TIMEOUT_S)
        if differences is None:
            differences = measured.found.differences
        owners = await kafka.find_throttle_owners()
        # Compare at once: a throttle that ends after the reading has an object until then.
        ownerless = frozenset(each for each in owners or () if not self._is_owned(each))
        found = Findings(directories=answers.by_broker, differences=differences, ownerless=ownerless)
        if answers.troubles:
            _log.info("disks not known", object=str(key), errors=answers.troubles)
        is_new, measured.found = found != measured.found, found
        if is_new:
            self._tell((key,))

    def _is_owned(self, owner: str) -> bool:
        """Return True if the object that set a throttle exists and has not ended, or if that cannot be known here."""
        namespace, _, rest = owner.partition("/")
        name, _, uid = rest.rpartition("/")
        if not name or (self._namespaces and namespace not in self._namespaces):
            return True
        stored = self._store.get(Key(PartitionReassignment.definition.kind, namespace, name))
        if stored is None or stored.uid != uid:
            return False
        return not isinstance(stored.resource, PartitionReassignment) or stored.resource.ending is None
