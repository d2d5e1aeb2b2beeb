"""Reads that also watch: at most one armed watch for each znode, and one event when it fires.

A watch is one-shot, so every read by a handler arms it again. A read for another reason would arm a second one, and
from then on each change would wake the controller twice. So this module records which watches are armed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from controller_core.zk.session import Watch, ZkNode, ZkSession

Event = TypeVar("Event")


class WatchedReads(Generic[Event]):
    """Reads the present state, and queues an event at its next change."""

    def __init__(self, zk: ZkSession, enqueue: Callable[[Event], None]) -> None:
        self._zk = zk
        self._enqueue = enqueue
        self._armed: set[tuple[str, str]] = set()

    async def read_nodes(self, paths: Sequence[str], event_of: Callable[[str], Event]) -> list[ZkNode | None]:
        """Return the znodes at the paths, each watched for being created, written or deleted."""
        unarmed = [path for path in paths if ("node", path) not in self._armed]
        found = dict(zip(unarmed, await self._arm(unarmed, event_of), strict=True))
        armed = [path for path in paths if path not in found]
        found |= dict(zip(armed, await self._zk.read_many(armed), strict=True)) if armed else {}
        return [found[path] for path in paths]

    def is_watched(self, path: str) -> bool:
        """Return True if the watch of a read znode is still armed: nobody has written or removed it since."""
        return ("node", path) in self._armed

    async def read_node(self, path: str, event: Event) -> ZkNode | None:
        """Return the znode at the path, watched for being created, written or deleted."""
        return (await self.read_nodes([path], lambda _: event))[0]

    async def read_children(self, path: str, event: Event) -> tuple[str, ...]:
        """Return the names of the children, watched for changes; empty if there is no such znode.

        Its creation is watched.
        """
        if ("children", path) in self._armed:
            return (await self._zk.children_many([path]))[0] or ()
        while True:
            with self._disarm_on_failure("children", [path]):
                children = await self._zk.children_watched(path, self._watch("children", path, event))
            if children is not None:
                return children
            # The znode is missing, so ZooKeeper armed no watch of its children. Watch for its creation instead; if it
            # was created in between, read the children again.
            self._armed.discard(("children", path))
            if await self.read_node(path, event) is None:
                return ()

    async def _arm(self, paths: list[str], event_of: Callable[[str], Event]) -> list[ZkNode | None]:
        if not paths:
            return []
        with self._disarm_on_failure("node", paths):
            return await self._zk.read_watched(paths, lambda path: self._watch("node", path, event_of(path)))

    @contextmanager
    def _disarm_on_failure(self, kind: str, paths: list[str]) -> Iterator[None]:
        """Forget the watches if the read that should arm them fails. Otherwise they would be missing for ever."""
        try:
            yield
        except BaseException:
            self._armed.difference_update((kind, path) for path in paths)
            raise

    def _watch(self, kind: str, path: str, event: Event) -> Watch:
        self._armed.add((kind, path))

        # The watch has fired, so it is disarmed: the handler's next read has to arm it again.
        def fire(_: object) -> None:
            self._armed.discard((kind, path))
            self._enqueue(event)

        return fire
