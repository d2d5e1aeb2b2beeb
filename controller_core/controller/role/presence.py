"""The controller processes of a cluster, as they see each other: who has which id, and who stands by with the state read.

Each has an ephemeral znode below `/kontroller/processes`, named by its id. So no two processes have one id, and one that
would take the role over cold can leave it to another that is hot.

A process that was killed leaves its znode behind until its session ends, and whoever is started in its place should not
have to wait for that. So it asks: it creates a question, which a living process deletes at once. Where nobody does within
`ANSWER_MS`, the other is dead and its znode is replaced; what it may still write, if it only slept, is fenced by the
epoch, and the first thing that it finds is a znode of its id that is not its own. Whoever claims an id writes the parent
of these znodes as well, so that of several that ask nobody replaces one who was faster. ZooKeeper carries the question, as
both processes reach it or could not be controller: an address may be shared, and a process id says nothing on another
machine or in another pod.
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
"""How long a living process may take to answer: its event loop is never held up for so long."""
POLL_MS: Final = 100

_NOBODY: Final = SessionId(0)
"""Owns a znode that is not ephemeral: no process made it as its sign of life, so it says nothing of one."""


class IdInUse(Exception):
    """Another living process has the same id. Fatal: a person has to give one of them another id."""


class Presence:
    """This process among the others. `present` is what it has to say of itself; `on_claimed` is called when the id is ours
    again, in a new session."""

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
        """What the znode says, as far as that is known."""
        self._claimed_in: SessionId | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether the id is ours in the present session: another `/controller` under it is that of a dead process."""
        return self._claimed_in == self._zk.session_id

    def wake(self) -> None:
        """The session may be another one: there is something to look at."""
        self._woken.set()

    def refresh(self) -> None:
        """What this process says of itself may be another thing by now: the others shall know."""
        if self._written != self._present():
            self._woken.set()

    async def claim(self, on_wait: Callable[[], None] = lambda: None) -> None:
        """Makes the id ours; `on_wait` is called where that takes a while. Raises `IdInUse`."""
        while not self.is_claimed:
            session = self._zk.session_id
            if await self._create():
                self._claimed_in = session
                return
            node, processes = await self._zk.read_many([self._path, paths.PROCESSES])
            if node is not None and node.ephemeral_owner in (session, _NOBODY):
                self._claimed_in, self._written = session, None
            elif node is not None and processes is not None:
                on_wait()
                await self._ask(node, Check(path=paths.PROCESSES, version=processes.version))

    async def keep(self) -> None:
        """Answers questions and keeps our znode true, until cancelled. Raises `IdInUse` where another has the id now."""
        while True:
            self._woken.clear()
            with suppress(ConnectionLost, SessionExpired):  # the new connection, or the new session, wakes us
                await self._look()
            await self._woken.wait()

    async def hot_other(self) -> BrokerId | None:
        """Another process that stands by, and would take the role over at once; the one with the smallest id."""
        names = (await self._zk.children_many([paths.PROCESSES]))[0] or ()
        others = [other for name in names if (other := paths.broker_id_named(name)) not in (None, self._id)]
        nodes = await self._zk.read_many([paths.process(other) for other in others])
        hot = [other for other, node in zip(others, nodes, strict=True) if node is not None and _is_fit(other, node)]
        return min(hot, default=None)

    async def lives(self, other: BrokerId) -> bool:
        """Whether there is a sign of life of another process."""
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
        """Finds out whether whoever has our id is alive, and takes its place where it is not. Raises `IdInUse`.

        `unclaimed` holds while nobody has claimed an id: else the znode may be that of a living process by then."""
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
        with suppress(TransactionFailed):  # answered after all, or gone: looked at once more
            await self._zk.transact([unclaimed, Delete(path=self._path, version=node.version), Delete(path=question)])
        with suppress(TransactionFailed):
            await self._zk.transact([Delete(path=question)])

    async def _is_answered(self, question: str, node: ZkNode) -> bool:
        """Waits for an answer, and no longer than a living process would take, or its znode is there."""
        for _ in range(ANSWER_MS // POLL_MS):
            await self._clock.sleep_ms(POLL_MS)
            unanswered, present = await self._zk.read_many([question, self._path])
            if unanswered is None:
                return True
            if present is None or present.czxid != node.czxid:
                break
        return False

    async def _look(self) -> None:
        for name in await self._watched.children(paths.QUESTIONS, None):
            if paths.is_question_to(self._id, name):
                with suppress(TransactionFailed):  # who asked may be gone
                    await self._zk.transact([Delete(path=f"{paths.QUESTIONS}/{name}")])
        node = await self._watched.node(self._path, None)
        if not self.is_claimed or node is None or node.ephemeral_owner not in (self._zk.session_id, _NOBODY):
            self._claimed_in = None
            await self.claim()
            self._on_claimed()
            self._woken.set()
        elif self._written != (present := self._present()):
            await self._write(present)

    async def _write(self, present: ProcessZnode) -> None:
        self._written = present  # before it is: whatever changes meanwhile is another thing again, and wakes us
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
