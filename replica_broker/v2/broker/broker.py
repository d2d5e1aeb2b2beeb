"""A broker of design v2: `brokerStartup`, then reactions to the znodes below `/brokers`.

One watch of that tree replaces the seed's listeners for state changes, leaders, reassignments and registrations. After
a lost connection, everything is read again. After a lost session, other brokers may lead this broker's partitions, and
it starts up again, which the seed's "session expiration listener" leaves open.
"""

import asyncio

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicPartition
from controller_core.supervision import run_until_one_ends
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import ConnectionLost, Create, SessionExpired, SessionId, ZkSession
from replica_broker.membership.looking import wait_until_connected
from replica_broker.membership.node import Node
from replica_broker.membership.registration import Registration
from replica_broker.v2.broker.becoming import Becoming
from replica_broker.v2.broker.cluster_view import ClusterView
from replica_broker.v2.broker.hosting import Hosting, NotReplicaForPartition
from replica_broker.v2.broker.opened_replicas import OpenedReplicas
from replica_broker.v2.broker.reassigning import Reassigning
from replica_broker.v2.broker.state_change_listener import StateChangeListener
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partitions
from replica_broker.v2.znodes.state_change_queue import StateChangeQueue

log = structlog.get_logger()


class ClusterHasController(Exception):
    """The chroot belongs to a cluster with a controller. Fatal: v2 needs its own."""


async def ensure_parents(zk: ZkSession) -> None:
    """Create the znodes that design v2 needs. Raises `ClusterHasController`."""
    for path, node in zip(paths.OF_CONTROLLERS, await zk.read_many(paths.OF_CONTROLLERS), strict=True):
        if node is not None:
            raise ClusterHasController(f"{path} exists: design v2 has no controller and needs its own chroot")
    await ensure_znodes(zk, [Create(path=path) for path in paths.PARENTS], zk.transact)


class V2Broker:
    """A broker of design v2."""

    def __init__(
        self,
        zk: ZkSession,
        node: Node,
        replicas: OpenedReplicas,
        registration: Registration,
        settings: V2Settings,
        clock: Clock,
    ) -> None:
        self._zk = zk
        self._node = node
        self._registration = registration
        self._view = ClusterView(zk, node.metadata)
        self._becoming = Becoming(zk=zk, node=node, replicas=replicas, settings=settings, clock=clock)
        self._reassigning = Reassigning(self._becoming)
        self._hosting = Hosting(self._becoming, self._reassigning)
        self._queue = StateChangeQueue(zk, node.id, bound=settings.state_change_queue_bound)
        self._listener = StateChangeListener(zk, self._queue, self._hosting)
        self._session: SessionId | None = None
        self._changed: dict[str, None] = {}
        self._is_watched = False
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. Raises `BrokerIdInUse`."""
        try:
            await run_until_one_ends(self._keep_listening(), self._reassigning.keep_committing())
        finally:
            await self._hosting.close()

    async def broker_startup(self) -> None:
        """Run the seed's `brokerStartup`; the watch is already set. Raises `BrokerIdInUse`."""
        session = self._zk.session_id
        await self._queue.create()
        await self._view.read_all()
        await self._listener.drain()
        for znodes in await self._read_assigned():
            await self._start(znodes.topic_partition)
        await self._registration.register()
        self._session = session

    async def _keep_listening(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._listen()
            except (ConnectionLost, SessionExpired):
                self._is_watched = False
                await wait_until_connected(self._zk)
                continue
            await self._woken.wait()

    async def _listen(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            self._changed.clear()
            await self._zk.watch_tree(paths.BROKERS, self._notice)
            if self._zk.session_id != self._session:
                await self.broker_startup()
            await self._look_at_all()
        while self._changed:
            changed, self._changed = tuple(self._changed), {}
            await self._dispatch(changed)

    def _notice(self, path: str | None) -> None:
        if path is None:
            self._is_watched = False
        else:
            self._changed[path] = None
        self._woken.set()

    async def _look_at_all(self) -> None:
        await self._view.read_all()
        await self._listener.drain()
        for where in self._hosting.started:
            self._hosting.on_leader_change(where)

    async def _dispatch(self, changed: tuple[str, ...]) -> None:
        partitions: dict[TopicPartition, None] = {}
        hosted: list[TopicPartition] = []
        are_brokers_changed = False
        for path in changed:
            if path.startswith(f"{paths.TOPICS}/"):
                where = paths.topic_partition_of(path, paths.TOPICS)
                if where is None:
                    continue
                if path in (paths.leader(where), paths.replicas(where), paths.isr(where)):
                    partitions[where] = None
                if path in (paths.leader(where), paths.replicas(where)):
                    hosted.append(where)
            elif path.startswith(f"{paths.REASSIGNED}/"):
                where = paths.topic_partition_of(path, paths.REASSIGNED)
                hosted += [] if where is None else [where]
            are_brokers_changed |= path.startswith(f"{paths.IDS}/")
        if partitions or are_brokers_changed:
            await self._view.read_changed(partitions)
        for where in self._hosting.started if are_brokers_changed else hosted:
            self._hosting.on_leader_change(where)
        if any(path.startswith(f"{paths.state(self._node.id)}/") for path in changed):
            await self._listener.drain()

    async def _read_assigned(self) -> list[PartitionZnodes]:
        """Run `get replica info from ZK and compute AR, a list of replicas assigned to this broker`."""
        (topics,) = await self._zk.children_many([paths.TOPICS])
        names = topics or ()
        listed = await self._zk.children_many([f"{paths.TOPICS}/{name}" for name in names])
        found = []
        for name, children in zip(names, listed, strict=True):
            below = [f"{paths.TOPICS}/{name}/{child}" for child in children or ()]
            there = [where for path in below if (where := paths.topic_partition_of(path, paths.TOPICS)) is not None]
            try:
                found += await read_partitions(self._zk, there)
            except MalformedZnode as error:
                log.error("unreadable topic is not started", topic=name, reason=str(error))
        return [znodes for znodes in found if self._node.id in znodes.hosts]

    async def _start(self, where: TopicPartition) -> None:
        try:
            await self._hosting.start_replica(where)
        except (NotReplicaForPartition, MalformedZnode) as error:
            log.warning("an assigned replica was not started", reason=str(error))
