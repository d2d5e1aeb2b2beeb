"""A recorder that looks on at a simulated cluster, and may not write."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from controller_core.journal.fold import Folded
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.recorder.recorder import Recorder
from controller_core.recorder.znodes.looking import ZnodesLooker
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import Watch, WriteOp, ZkError, ZkNode, ZkSession
from simulation.cluster import Cluster
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to


class ReadOnlySession(DelegatingSession):
    """A session that refuses to write. `meanwhile` runs once, before the next states of partitions are read."""

    def __init__(self, session: ZkSession) -> None:
        super().__init__(session)
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        if self.meanwhile is not None and any(path.endswith("/state") for path in paths):
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await super().read_watched(paths, watch)

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        raise AssertionError(f"a recorder writes: {ops}")

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        raise AssertionError(f"a recorder writes: {transactions}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    look_interval_ms: int = 100
    journal_snapshot_interval_seconds: int = 3600
    journal_alive_interval_seconds: int = 10


class Watched:
    """A cluster whose journal a recorder writes."""

    def __init__(self, cluster: Cluster, settings: Settings | None = None, timeout_ms: int = 1000) -> None:
        self.cluster = cluster
        self.journal = MemoryJournal()
        self.session = cluster.zk.session()
        self.read_only = ReadOnlySession(self.session)
        looker = ZnodesLooker(self.read_only, timeout_ms=timeout_ms)
        self.recorder = Recorder(looker, self.journal, cluster.clock, settings or Settings())

    async def look(self) -> list[Line]:
        """Return the lines that a look adds to the journal, once all processes are at rest."""
        known = len(self.journal.lines)
        await self.cluster.settle()
        await self.recorder.look()
        return self.lines()[known:]

    def lines(self) -> list[Line]:
        return [entry.line for entry in self.journal.entries() if isinstance(entry, Record)]

    def assert_comes_to_the_cluster(self) -> Folded:
        """The journal that was written comes to the state of the controller, which is that of ZooKeeper."""
        return assert_journal_folds_to(self.cluster.active.term.state, self.journal, has_files=False)


def list_recorded(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Kinds and causes, without those of a snapshot."""
    return [(line.kind, line.cause) for line in lines if not line.snapshot and not line.kind.startswith("snapshot")]
