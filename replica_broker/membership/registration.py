"""The registration of this broker in `/brokers/ids/N`.

It shows that the broker is alive; its czxid is the broker epoch.

A killed process leaves it behind until ZooKeeper expires the session. If a registration has this broker's id and one of
its addresses, it is from an earlier life, because no other process can listen there; this broker waits for its end. A
registration with other addresses is another broker's and an error.

After a lost session, the broker registers again with a new epoch. The controller treats it as restarted and sends its
leaderships again. In between it could commit nothing, because its ISRs are bound to the old epochs.
"""

import asyncio
import time
from dataclasses import replace
from typing import Final

import structlog

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.session import (
    ConnectionLost,
    Create,
    CreateMode,
    NodeExists,
    SessionExpired,
    SessionId,
    ZkNode,
    ZkSession,
)
from replica_broker.membership.looking import wait_until_connected
from replica_broker.membership.node import Node

log = structlog.get_logger()

_LOOK_S: Final = 0.2
_PATIENCE_S: Final = 15.0
"""Added to twice the session timeout:

ZooKeeper expires sessions late, and an earlier life may have had a longer timeout.
"""


class BrokerIdInUse(Exception):
    """Another live broker has the id. Fatal: give one of them another id."""


class Registration:
    """Registers the broker, and again in every new session."""

    def __init__(
        self,
        zk: ZkSession,
        node: Node,
        broker: Broker,
        *,
        session_timeout_ms: int,
    ) -> None:
        self._zk = zk
        self._node = node
        self._broker = broker
        self._path = paths.broker(broker.id)
        self._patience_s = 2 * session_timeout_ms / 1000 + _PATIENCE_S
        self._session: SessionId | None = None
        self._woken = asyncio.Event()

    async def register(self) -> None:
        """Register in the current session. Raises `BrokerIdInUse`."""
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                if await self._is_registered(deadline_s):
                    return
            except (ConnectionLost, SessionExpired):
                await wait_until_connected(self._zk)
                continue
            await asyncio.sleep(_LOOK_S)

    async def keep(self) -> None:
        """Register again after each change of the session, until cancelled. Raises `BrokerIdInUse`."""
        remove = self._zk.add_listener(lambda _: self._woken.set())
        try:
            while True:
                self._woken.clear()
                if self._zk.session_id != self._session:
                    log.warning("the ZooKeeper session was lost: registering again")
                    await wait_until_connected(self._zk)
                    await self.register()
                await self._woken.wait()
        finally:
            remove()

    async def _is_registered(self, deadline_s: float) -> bool:
        session = self._zk.session_id
        data = encode_own_registration(self._broker, timestamp_ms=time.time_ns() // 1_000_000)
        try:
            await self._zk.transact([Create(path=self._path, data=data, mode=CreateMode.EPHEMERAL)])
        # The read decides: an earlier transaction may have created the registration although its answer was lost.
        except NodeExists:
            log.debug("a registration of this id exists")
        (znode,) = await self._zk.read_many([self._path])
        if znode is None:
            return False
        if znode.ephemeral_owner != session:
            self._judge(znode, deadline_s)
            return False
        self._session = session
        self._node.has_registered(BrokerEpoch(znode.czxid))
        log.info("registered", broker=self._broker.id, epoch=znode.czxid)
        return True

    def _judge(self, znode: ZkNode, deadline_s: float) -> None:
        """Raise `BrokerIdInUse` if the registration is another broker's, or does not expire in time."""
        there = _endpoints(self._broker.id, znode)
        if not _addresses(there) & _addresses(self._broker.endpoints):
            raise BrokerIdInUse(
                f"another broker is registered as {self._broker.id}, at {_format(there)}: "
                "give each broker an --id of its own"
            )
        if time.monotonic() > deadline_s:
            raise BrokerIdInUse(
                f"a broker is registered as {self._broker.id} at the same address, {_format(there)}, and its session "
                "does not expire: stop the process that has it"
            )


def encode_own_registration(broker: Broker, *, timestamp_ms: int) -> bytes:
    """Encode the registration of a reference broker, which declares that it is no stock broker."""
    return codecs.encode_broker(replace(broker, is_ours=True), timestamp_ms=timestamp_ms)


async def read_stock_brokers(zk: ZkSession) -> list[BrokerId]:
    """Return the registered stock brokers."""
    brokers = sorted(await read_registered_brokers(zk))
    nodes = await zk.read_many([paths.broker(broker) for broker in brokers])
    return [
        broker for broker, node in zip(brokers, nodes, strict=True) if node is not None and not _is_ours(broker, node)
    ]


async def read_other_listeners(zk: ZkSession, broker: BrokerId) -> set[str]:
    """Return the listener names of the other registered brokers."""
    others = sorted(await read_registered_brokers(zk) - {broker})
    nodes = await zk.read_many([paths.broker(other) for other in others])
    return {
        endpoint.listener
        for other, node in zip(others, nodes, strict=True)
        if node is not None
        for endpoint in _endpoints(other, node)
    }


def _is_ours(broker: BrokerId, node: ZkNode) -> bool:
    try:
        return codecs.decode_broker(broker, node).is_ours
    except MalformedZnode:
        return False


def _endpoints(broker_id: BrokerId, znode: ZkNode) -> tuple[Endpoint, ...]:
    try:
        return codecs.decode_broker(broker_id, znode).endpoints
    except MalformedZnode:
        return ()


def _addresses(endpoints: tuple[Endpoint, ...]) -> set[tuple[str, int]]:
    return {(endpoint.host, endpoint.port) for endpoint in endpoints}


def _format(endpoints: tuple[Endpoint, ...]) -> str:
    return ", ".join(f"{one.listener}://{one.host}:{one.port}" for one in endpoints) or "an unreadable address"
