"""Keeps the view of one cluster current, by watches only.

All topics share one watch, and all their configurations another one. Every other relevant znode has its own watch, and
so have all znodes of topics before ZooKeeper 3.6. (A watch for each takes more memory than the topics.) A watch that
fires makes its path dirty. Dirty paths are read together after a short pause, so that a storm of changes makes few
views. A view is published only if no path is dirty. ZooKeeper notifies a client of a change before it shows the change.
So a view that shows one change has every earlier change too, in whatever znodes. (If that order is lost for a moment: a
plan that declares something lost first calls `refresh`, which reads everything again.) A lost connection makes every
watched path dirty, by the contract of `ZkSession`, so restarts and expired sessions need no special treatment. Until
everything was read again, the last view stays, marked as not current.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

import structlog

from controller_core.model.snapshot import Snapshot
from controller_core.security.properties_file import InvalidProperties
from controller_core.supervision import start_supervised
from controller_core.zk.session import AccessRefused, TreeWatchUnsupported, Watch, ZkError, ZkSession
from controller_core.zk.snapshots.known_znodes import LISTS, SINGLES, TREES, KnownZnodes
from controller_operator.observation.observation import NotCurrent, Observation, Observations
from controller_operator.resources.conditions import Reason

_CONNECT_WAIT_MS: Final = 1_000
_MISSING_LIST_RETRY_S: Final = 2.0
_LONGEST_RETRY_S: Final = 10.0
_READ_AT_ONCE: Final = 1_000
"""Znodes that are decoded without a pause: some ten milliseconds."""
_log = structlog.get_logger(__name__)

OpenSession = Callable[[], Awaitable[ZkSession]]
"""Connects to ZooKeeper. Raises `ZkError` on failure."""


class ChrootMissing(NotCurrent):
    """ZooKeeper answers, but does not have the chroot."""


class ClusterObserver:
    """Observes one cluster through a session that it opens, and opens again if it is refused."""

    def __init__(self, open_session: OpenSession, *, debounce_ms: int = 20, retry_s: float = 1.0) -> None:
        self._open_session = open_session
        self._debounce_s = debounce_ms / 1000
        self._retry_s = self._pause_s = retry_s
        self._session: ZkSession | None = None
        self._known = KnownZnodes()
        self._dirty: set[str] = set(SINGLES) | set(LISTS)
        self._armed: set[str] = set()
        """The paths with their own watch, and the trees whose children were listed since the tree is watched."""
        self._trees: set[str] = set()
        """The watched trees."""
        self._has_tree_watches = True
        self._missing_lists: set[str] = set(LISTS)
        self._woken = asyncio.Event()
        self._observations = Observations(Observation(trouble="not connected to ZooKeeper yet"))
        self._dirty_since: float | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def observation(self) -> Observation:
        return self._observations.last

    @property
    def session(self) -> ZkSession:
        """The session for writes. Raises `NotCurrent` if there is no session yet."""
        if self._session is None:
            raise NotCurrent(self.observation.trouble or "not connected to ZooKeeper yet")
        return self._session

    def start(self) -> None:
        """Begin to observe, in a task of its own."""
        self._task = start_supervised(self._run, name="cluster observer")

    async def stop(self) -> None:
        """End the observation and close the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """See `Observations`."""
        self._observations.add_listener(listener)

    async def wait_for(self, predicate: Callable[[Observation], bool]) -> Observation:
        """See `Observations`."""
        return await self._observations.wait_for(predicate)

    async def refresh(self, paths: Iterable[str] | None = None, timeout_s: float = 10.0) -> Snapshot:
        """Read these paths again, or everything. The returned view has all that was written there before the call.

        Raises `NotCurrent`."""

        def wake() -> None:
            self._make_all_dirty() if paths is None else self._make_dirty(self._find_touched(paths))

        return await self._observations.refresh(wake, timeout_s, waits_for_sight=True)

    async def _run(self) -> None:
        while True:
            try:
                session = self._session or await self._connect()
                await self._keep_current(session)
            except (ZkError, TimeoutError) as error:
                await self._tell_trouble(error)
                await self._wait_for_connection()
            except Exception as error:
                self._make_all_dirty()
                await self._tell_trouble(error)
                raise  # logged, and started again

    async def _connect(self) -> ZkSession:
        session = await self._open_session()
        self._session = session
        self._pause_s = self._retry_s
        if self.observation.view is None:
            self._observations.set_silently(Observation(trouble="its znodes are being read", is_being_read=True))
        return session

    async def _keep_current(self, session: ZkSession) -> None:
        while True:
            await self._wait_until_dirty()
            asked = self._observations.asked
            while self._dirty:
                await self._read(session, self._take_dirty())
            await self._publish()
            await self._observations.mark_refreshed(asked)

    async def _wait_until_dirty(self) -> None:
        """Wait for work and a short pause. Look again now and then for lists that did not exist."""
        while not self._dirty and not self._observations.is_waited_for:
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), _MISSING_LIST_RETRY_S if self._missing_lists else None)
            except TimeoutError:
                self._dirty |= self._missing_lists
        await asyncio.sleep(self._debounce_s)

    def _take_dirty(self) -> list[str]:
        taken = sorted(self._dirty)
        self._dirty.clear()
        return taken

    async def _read(self, session: ZkSession, taken: list[str]) -> None:
        """Read the paths, and take in their content. Make them dirty again on failure."""
        try:
            await self._watch_trees(session)
            # Lists first: the missing znode of a deleted topic is then not taken for a broken one.
            for path in (path for path in taken if path in LISTS):
                await self._read_list(session, path)
            nodes = [path for path in taken if path not in LISTS]
            for first in range(0, len(nodes), _READ_AT_ONCE):
                some = nodes[first : first + _READ_AT_ONCE]
                await self._read_nodes(session, [path for path in some if self._is_wanted(path)])
        except BaseException:
            self._dirty.update(taken)
            raise

    def _is_wanted(self, path: str) -> bool:
        return path in SINGLES or self._known.is_wanted(path)

    async def _watch_trees(self, session: ZkSession) -> None:
        for tree in TREES:
            if tree in self._trees or not self._has_tree_watches:
                continue
            self._trees.add(tree)  # before the answer is there, because the watch may be lost before it
            try:
                await session.watch_tree(tree, partial(self._on_tree, tree))
            except TreeWatchUnsupported:
                self._has_tree_watches = False
                self._trees.discard(tree)
                _log.warning("each znode has its own watch, which takes memory: ZooKeeper 3.6 or newer needs fewer")
            except BaseException:
                self._trees.discard(tree)
                raise

    async def _read_list(self, session: ZkSession, path: str) -> None:
        is_armed, is_in_tree = path in self._armed, path in self._trees
        if is_armed and is_in_tree:
            return  # the watch has reported each child that came or went
        self._armed.add(path)  # before the answer is there, because a watch may fire, or be lost, before it
        try:
            if is_armed or is_in_tree:
                names = (await session.children_many([path]))[0]
            else:
                names = await session.children_watched(path, self._watch(path))
        except BaseException:
            self._armed.discard(path)
            raise
        if names is None:
            self._armed.discard(path)
        (self._missing_lists.add if names is None else self._missing_lists.discard)(path)
        self._dirty.update(self._known.take_children(path, names or ()))

    async def _read_nodes(self, session: ZkSession, wanted: list[str]) -> None:
        watched = [path for path in wanted if path in self._armed or self._tree_of(path)]
        unwatched = [path for path in wanted if path not in self._armed and not self._tree_of(path)]
        nodes = dict(zip(watched, await session.read_many(watched), strict=True)) if watched else {}
        if unwatched:
            # Armed before the answer is there, because a watch may fire before it.
            self._armed.update(unwatched)
            try:
                nodes |= zip(unwatched, await session.read_watched(unwatched, self._watch), strict=True)
            except BaseException:
                self._armed.difference_update(unwatched)
                raise
        for path, node in nodes.items():
            self._dirty.update(self._known.take(path, node))

    def _watch(self, path: str) -> Watch:
        def on_fire(_event: object) -> None:
            self._armed.discard(path)
            self._make_dirty((path,))

        return on_fire

    def _on_tree(self, tree: str, path: str | None) -> None:
        """Handle a created, written or deleted znode of a tree. None: the watch is lost, and any may have changed."""
        if path is None:
            self._trees.discard(tree)
            self._armed.discard(tree)
            self._make_dirty((*(each for each in LISTS if each == tree), *self._known.list_paths_below(tree)))
        elif changed := self._find_touched((path,)):
            self._make_dirty(changed)

    def _tree_of(self, path: str) -> str | None:
        """Return the watched tree that contains this path; None if there is none."""
        return next((tree for tree in self._trees if path.startswith(f"{tree}/")), None)

    def _find_touched(self, paths: Iterable[str]) -> list[str]:
        """Return the paths to read after these changes. In trees, some changes matter to nobody, and some add paths."""
        found = ((path,) if self._tree_of(path) is None else self._known.take_change(path) for path in paths)
        return [path for each in found for path in each]

    def _make_all_dirty(self) -> None:
        self._armed -= self._trees  # their children are listed again
        below = (path for tree in self._trees for path in self._known.list_paths_below(tree))
        self._make_dirty((*SINGLES, *LISTS, *self._armed, *below))

    def _make_dirty(self, changed: Iterable[str]) -> None:
        self._dirty.update(changed)
        self._dirty_since = self._dirty_since or asyncio.get_running_loop().time()
        self._woken.set()

    async def _publish(self) -> None:
        now = asyncio.get_running_loop().time()
        lag_s = now - self._dirty_since if self._dirty_since else None
        self._dirty_since = None
        before, view = self.observation.view, self._known.take_snapshot()
        for path, reason in view.malformed.items():
            if before is None or before.malformed.get(path) != reason:
                _log.warning("znode makes no sense", path=path, reason=reason)
        await self._observations.tell(Observation(view=view, lag_s=lag_s))

    async def _tell_trouble(self, error: Exception) -> None:
        trouble = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if trouble != self.observation.trouble:
            log = _log.error if isinstance(error, AccessRefused) else _log.warning
            log("cluster out of sight", trouble=trouble)
            observation = Observation(view=self.observation.view, trouble=trouble, reason=_find_reason(error))
            await self._observations.tell(observation)

    async def _wait_for_connection(self) -> None:
        if self._session is None:
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, max(self._retry_s, _LONGEST_RETRY_S))
        elif not await self._session.wait_connected(_CONNECT_WAIT_MS):
            _log.debug("still no connection to ZooKeeper")
        else:
            # Connected and still refused: do not spin.
            await asyncio.sleep(self._debounce_s)


def _find_reason(error: Exception) -> Reason:
    if isinstance(error, ChrootMissing):
        return Reason.CHROOT_NOT_FOUND
    return Reason.NOT_ADMITTED if isinstance(error.__cause__, InvalidProperties) else Reason.ZOOKEEPER_UNAVAILABLE
