"""The presence of the controller processes of a cluster: their ids, and which are hot standbys.

Each process has an ephemeral znode below `/kontroller/processes`, named by its id, so that no two processes share an
id, and a cold process can leave a takeover to a hot one.

A killed process leaves its znode behind until its session ends. Its replacement does not wait for that: it creates a
question, which a living process deletes at once. Without an answer within `ANSWER_MS` the other process counts as dead
and its znode is replaced; if it only slept, the epoch fences its writes. A claim also writes the parent znode, so that
of several processes that ask, none replaces a faster one. The question goes through ZooKeeper, because addresses may be
shared, and process ids mean nothing on another machine.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode, ProcessZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import (
    Check,
    ConnectionLost,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    SessionExpired,
    SessionId,
    SetData,
    TransactionFailed,
    ZkNode,
    ZkSession,
)

log = structlog.get_logger()

ANSWER_MS: Final = 1000
"""The time within which a living process answers. Its event loop is never held up for so long."""
POLL_MS: Final = 100

_NOBODY: Final = SessionId(0)
"""The owner of a znode that is not ephemeral. No process created it as its sign of life."""


class IdInUse(Exception):
    """Another living process has the same id. Fatal: a person has to give one of them another id."""


class Presence:
    """This process among the others.

    `present` returns its content for the znode. `on_claimed` is called when the id is claimed again in a new session.
    """

    def __init__(
        self,
        own_id: BrokerId,
        zk: ZkSession,
        clock: Clock,
        *,
        present: Callable[[], ProcessZnode],
        on_claimed: Callable[[], None],
    ) -> None:
        self._id = own_id
        self._path = paths.process(own_id)
        self._zk = zk
        self._clock = clock
        self._present = present
        self._on_claimed = on_claimed
        self._woken = asyncio.Event()
        self._watched: WatchedReads[None] = WatchedReads(zk, lambda _: self._woken.set())
        self._written: ProcessZnode | None = None
        """The last known content of the znode."""
        self._claimed_in: SessionId | None = None

    @property
    def is_claimed(self) -> bool:
        """True if the id is ours in the present session. Another `/controller` under it belongs to a dead process."""
        return self._claimed_in == self._zk.session_id

    def wake(self) -> None:
        """Check the znodes again: the session may be another one."""
        self._woken.set()

    def refresh(self) -> None:
        """Write the znode again if the state of this process has changed, so that the others know."""
        if self._written != self._present():
            self._woken.set()

    async def claim(self, on_wait: Callable[[], None] = lambda: None) -> None:
        """Claim the id. `on_wait` is called if that takes a while. Raises `IdInUse`."""
        while not self.is_claimed:
            session = self._zk.session_id
            if await self._create():
                self._claimed_in = session
                return
            node, processes = await self._zk.read_many([self._path, paths.PROCESSES])
            # Ours by this session, or by nobody's: the answer to our own creation was lost, or a person made the znode.
            if node is not None and node.ephemeral_owner in (session, _NOBODY):
                self._claimed_in, self._written = session, None
            elif node is not None and processes is not None:
                on_wait()
                await self._ask(node, Check(path=paths.PROCESSES, version=processes.version))

    async def keep(self) -> None:
        """Answer questions and keep our znode current, until cancelled.

        Raises `IdInUse` if another process has the id now.
        """
        while True:
            self._woken.clear()
            with suppress(ConnectionLost, SessionExpired):  # a new connection or session wakes this task
                await self._look()
            await self._woken.wait()

    async def find_hot_other(self) -> BrokerId | None:
        """Return the hot standby with the smallest id among the other processes; None if there is none."""
        names = (await self._zk.children_many([paths.PROCESSES]))[0] or ()
        others = [other for name in names if (other := paths.parse_broker_id(name)) not in (None, self._id)]
        nodes = await self._zk.read_many([paths.process(other) for other in others])
        hot = [other for other, node in zip(others, nodes, strict=True) if node is not None and _is_fit(other, node)]
        return min(hot, default=None)

    async def is_alive(self, other: BrokerId) -> bool:
        """Return True if there is a sign of life of another process."""
        return (await self._zk.read_many([paths.process(other)]))[0] is not None

    async def _create(self) -> bool:
        self._written = present = self._present()
        try:
            await self._zk.transact([SetData(path=paths.PROCESSES, data=b""), self._sign_of_life(present)])
        except NodeExists:
            return False
        except NoNode:
            await self._make_parents()
            return False
        return True

    async def _make_parents(self) -> None:
        parents = [Create(path=path) for path in (paths.KONTROLLER, paths.PROCESSES, paths.QUESTIONS)]
        await ensure_znodes(self._zk, parents, self._zk.transact)

    def _sign_of_life(self, present: ProcessZnode) -> Create:
        return Create(path=self._path, data=codecs.encode_process(present), mode=CreateMode.EPHEMERAL)

    async def _ask(self, node: ZkNode, unclaimed: Check) -> None:
        """Ask if the process with our id is alive, and replace it if it is dead. Raises `IdInUse`.

        `unclaimed` fails the replacement if anybody has claimed an id since, because the znode may be that process's.
        """
        session = self._zk.session_id
        question = paths.question(self._id, session)
        try:
            await self._zk.transact([Create(path=question, mode=CreateMode.EPHEMERAL)])
        except NodeExists:
            log.debug("asked before, in the same session")
        except NoNode:
            await self._make_parents()
            return
        if await self._is_answered(question, node) and self._zk.session_id == session:
            raise IdInUse(_refusal(self._id, self._path, node))
        log.info("a former process of this id is gone", whereabouts=_whereabouts(self._path, node))
        with suppress(TransactionFailed):  # answered after all, or gone: the caller tries again
            await self._zk.transact([unclaimed, Delete(path=self._path, version=node.version), Delete(path=question)])
        with suppress(TransactionFailed):
            await self._zk.transact([Delete(path=question)])

    async def _is_answered(self, question: str, node: ZkNode) -> bool:
        """Wait for an answer as long as a living process may take. False if there is none, or its znode disappears."""
        for _ in range(ANSWER_MS // POLL_MS):
            await self._clock.sleep_ms(POLL_MS)
            unanswered, present = await self._zk.read_many([question, self._path])
            if unanswered is None:
                return True
            if present is None or present.czxid != node.czxid:
                break
        return False

    async def _look(self) -> None:
        for name in await self._watched.read_children(paths.QUESTIONS, None):
            if paths.is_question_to(self._id, name):
                with suppress(TransactionFailed):  # the asking process may be gone
                    await self._zk.transact([Delete(path=f"{paths.QUESTIONS}/{name}")])
        node = await self._watched.read_node(self._path, None)
        if not self.is_claimed or node is None or node.ephemeral_owner not in (self._zk.session_id, _NOBODY):
            self._claimed_in = None
            await self.claim()
            self._on_claimed()
            self._woken.set()
        elif self._written != (present := self._present()):
            await self._write(present)

    async def _write(self, present: ProcessZnode) -> None:
        self._written = present  # set before the write: any later change differs from it and wakes us
        try:
            await self._zk.transact([SetData(path=self._path, data=codecs.encode_process(present))])
        except TransactionFailed:
            self._written = None  # it was taken away: the watch fires
        except (ConnectionLost, SessionExpired):
            self._written = None
            raise


def _refusal(own_id: BrokerId, path: str, node: ZkNode) -> str:
    return (
        f"another controller process has the id {own_id} and is alive, on {_whereabouts(path, node)}: "
        "give each process an --id of its own"
    )


def _whereabouts(path: str, node: ZkNode) -> str:
    try:
        return codecs.decode_process(path, node.data).whereabouts
    except MalformedZnode as error:
        return str(error)


def _is_fit(process: BrokerId, node: ZkNode) -> bool:
    try:
        said = codecs.decode_process(paths.process(process), node.data)
    except MalformedZnode as error:
        log.error("unreadable sign of life of a controller process, ignored", error=str(error))
        return False
    return said.is_hot and said.hindrance is None
