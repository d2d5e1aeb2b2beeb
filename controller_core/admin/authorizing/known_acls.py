"""The ACLs of the cluster in ZooKeeper, kept current by every process, also by a standby.

All ACLs are read at the start, and again after a lost connection, because notifications may have come and gone. After
that each notification names a changed ACL, which is read. While ZooKeeper is unreachable the known ACLs apply, as in
Kafka. This module writes nothing: brokers change ACLs for clients.

An unreadable ACL denies everything on its resource, except to super users. (A Kafka broker does not start with one, and
keeps the earlier ACL if one becomes unreadable later.)
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from controller_core.admin.authorizing.acl_znodes import acl_path, decode_acl, decode_acl_change, parent_of
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.model.authorization.acls import NOBODY_MAY, AclTable, Entry, Pattern, ResourceType
from controller_core.supervision import start_supervised
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ConnectionLost, SessionExpired, SessionState, ZkSession

log = structlog.get_logger()

OF_CONTROLLERS: Final = (ResourceType.TOPIC, ResourceType.CLUSTER)
"""The resource types that a controller decides about."""
PATIENCE_S: Final = 10.0
"""Seconds that a request waits for the first read of the ACLs."""
LOOK_AGAIN_S: Final = 1.0
_AT_ONCE: Final = 200
"""ACLs that are read and decoded before other tasks on the event loop run."""
_LARGE_BYTES: Final = 16 << 10
"""Larger ACLs are decoded in another thread."""
_CHANGES: Final = (paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES)


class _NotificationsMissed(Exception):
    """Something has changed, but the notification that names it is lost."""


class KnownAcls:
    """`begin` starts reading. `table` waits until all ACLs have been read once. `kinds`: the resource types to read."""

    def __init__(
        self, zk: ZkSession, *, kinds: Collection[ResourceType] = OF_CONTROLLERS, patience_s: float = PATIENCE_S
    ) -> None:
        self.unusable: Final = UnusableZnodes()
        self._zk = zk
        self._kinds = kinds
        self._patience_s = patience_s
        self._table: AclTable | None = None
        self._read = asyncio.Event()
        self._woken = asyncio.Event()
        self._is_lost = False

    async def table(self) -> AclTable:
        """Return the current ACLs. Raises `NoAnswerNow` if they could not be read yet."""
        if self._table is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s):
                    await self._read.wait()
        if self._table is None:
            raise NoAnswerNow("ACLs could not be read from ZooKeeper yet")
        return self._table

    def begin(self) -> asyncio.Task[None]:
        """Keep the ACLs current until the returned task is cancelled."""
        return start_supervised(self._run, name="ACLs")

    async def _run(self) -> None:
        stop_listening = self._zk.add_listener(self._on_session_state)
        try:
            while True:
                try:
                    await self._keep_current()
                except _NotificationsMissed as error:
                    log.warning("all ACLs are read again", reason=str(error))
                except (ConnectionLost, SessionExpired) as error:
                    log.info("ACLs stay as they are known until ZooKeeper answers again", reason=str(error))
                await asyncio.sleep(LOOK_AGAIN_S)
        finally:
            stop_listening()

    def _on_session_state(self, state: SessionState) -> None:
        if state is not SessionState.CONNECTED:
            self._is_lost = True
            self._woken.set()

    async def _keep_current(self) -> None:
        """Read all ACLs, then the changed ones. Return when the connection was lost."""
        self._is_lost = False
        reads = WatchedReads[None](self._zk, lambda _: self._woken.set())
        seen = await self._notifications(reads)  # read these before the ACLs, so that no change is missed
        self._table = await self._all()
        self._read.set()
        log.info("ACLs were read", resources=len(self._table))
        while not self._is_lost:
            await self._woken.wait()
            self._woken.clear()
            present = await self._notifications(reads)
            if new := present - seen:
                await self._learn(await self._read_changed_patterns(sorted(new)), self._table)
            seen = present

    async def _notifications(self, reads: WatchedReads[None]) -> frozenset[str]:
        return frozenset(
            [f"{parent}/{name}" for parent in _CHANGES for name in await reads.read_children(parent, None)]
        )

    async def _read_changed_patterns(self, notifications: list[str]) -> set[Pattern]:
        """Return the changed patterns. Raises `_NotificationsMissed` if a notification is gone or unreadable."""
        changed = set()
        for path, node in zip(notifications, await self._zk.read_many(notifications), strict=True):
            if node is None:
                raise _NotificationsMissed(f"{path} was deleted before it was read")
            try:
                changed.add(decode_acl_change(path, node.data))
            except MalformedZnode as error:
                raise _NotificationsMissed(str(error)) from error
        return {pattern for pattern in changed if pattern is not None and pattern.type in self._kinds}

    async def _all(self) -> AclTable:
        table = AclTable()
        for kind in self._kinds:
            for is_prefix in (False, True):
                parent = parent_of(kind, is_prefix=is_prefix)
                (names,) = await self._zk.children_many([parent])
                self.unusable.keep_among(parent, names or ())
                await self._learn([Pattern(kind, name, is_prefix) for name in names or ()], table)
        return table

    async def _learn(self, patterns: Iterable[Pattern], table: AclTable) -> None:
        async for pattern, entries in self._entries_of(list(patterns)):
            table.put(pattern, entries)

    async def _entries_of(self, patterns: list[Pattern]) -> AsyncIterator[tuple[Pattern, frozenset[Entry]]]:
        for first in range(0, len(patterns), _AT_ONCE):
            some = patterns[first : first + _AT_ONCE]
            nodes = await self._zk.read_many([acl_path(pattern) for pattern in some])
            for pattern, node in zip(some, nodes, strict=True):
                yield pattern, await self._entries(acl_path(pattern), node.data if node is not None else b"")

    async def _entries(self, path: str, data: bytes) -> frozenset[Entry]:
        decoded = partial(decode_acl, path, data)
        try:
            entries = await asyncio.to_thread(decoded) if len(data) > _LARGE_BYTES else decoded()
        except MalformedZnode as error:
            self.unusable.report(path, "unreadable ACL: only super users may use its resource", error)
            return NOBODY_MAY
        self.unusable.clear(path)
        return entries
