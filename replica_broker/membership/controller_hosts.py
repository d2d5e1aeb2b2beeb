"""The present controller in ZooKeeper: its hosts, which its commands come from, and its epoch.

`/controller` names the controller. If it is a broker, its hosts are those of its registration. A Kontroller is
registered nowhere as a broker, so it writes its hosts into its own znode below `/kontroller/processes`. Metadata that a
controller sent is no source, because a stranger could send it.
"""

import asyncio
from collections.abc import Collection

import structlog

from controller_core.model.ids import ControllerEpoch
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ANY_VERSION, Check, Watch, ZkNode, ZkSession
from replica_broker.membership.looking import keep_looking

log = structlog.get_logger()


class ControllerHosts:
    """The hosts as they were last read. Empty while there is no controller."""

    def __init__(self, zk: ZkSession) -> None:
        self._zk = zk
        self._known: Collection[str] = ()
        self.reads = 0
        """The number of reads that `refresh` began."""
        self._turn = asyncio.Lock()

    def list_known(self) -> Collection[str]:
        """Return the hosts without waiting."""
        return self._known

    async def refresh(self) -> None:
        """Read the hosts as they are now. Concurrent callers share a read. Raises the errors of ZooKeeper."""
        wanted = self.reads + 1
        async with self._turn:
            if self.reads < wanted:  # otherwise a read has begun after this call, and is finished
                self.reads += 1
                node = await _read_newest(self._zk, paths.CONTROLLER)
                await self._learn(node)

    async def keep(self) -> None:
        """Keep the hosts current until cancelled."""

        async def look(watch: Watch) -> None:
            (node,) = await self._zk.read_watched([paths.CONTROLLER], lambda _: watch)
            await self._learn(node)

        await keep_looking(self._zk, look)

    async def _learn(self, node: ZkNode | None) -> None:
        try:
            self._known = () if node is None else await self._find_hosts(node)
        except MalformedZnode as error:
            log.error("the controller's hosts are unreadable: its commands are refused", error=str(error))
            self._known = ()

    async def _find_hosts(self, node: ZkNode) -> Collection[str]:
        controller = codecs.decode_controller(node.data)
        places = [paths.broker(controller), paths.process(controller)]
        broker, process = await self._zk.read_many(places)
        if broker is not None:
            return {endpoint.host for endpoint in codecs.decode_broker(controller, broker).endpoints}
        return () if process is None else codecs.decode_process(places[1], process.data).hosts


async def read_controller_epoch(zk: ZkSession) -> ControllerEpoch | None:
    """Return the epoch of the newest controller, or None if there was none.

    Raises `MalformedZnode` and the errors of ZooKeeper.
    """
    node = await _read_newest(zk, paths.CONTROLLER_EPOCH)
    return None if node is None else codecs.decode_controller_epoch(node.data)


async def _read_newest(zk: ZkSession, path: str) -> ZkNode | None:
    """Read a znode. A server of ZooKeeper may lag behind the others, but not behind a transaction of this session."""
    await zk.transact([Check(path=paths.BROKER_IDS, version=ANY_VERSION)])
    (node,) = await zk.read_many([path])
    return node
