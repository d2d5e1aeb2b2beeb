"""A watch for each cluster that occurs in the journals. Its alarms go to the board.

A cluster's time passes only while none of its journals has more to read. At the start its past is read silently until
all journals have been read to their ends, because an unread one may have its newest term. Then its problems are
compared with the board's alarms from before the restart, so none is repeated and finished ones are cleared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.journal.changes import Kind
from controller_core.journal.reader import Finding, Position, parse
from controller_core.journal.records import Line
from kontroller.history.alarms.own_time import OwnTime
from kontroller.history.alarms.records import CLEARED, NOWHERE, SILENT, Alarm, Rules, Seen
from kontroller.history.alarms.watch import Course, Watch
from kontroller.history.watching.board import Board, Key, Standing
from kontroller.history.watching.journals.journal import Chunk

log = structlog.get_logger()

MOST_CLUSTERS: Final = 1_000
"""The most clusters that are watched, because foreign lines must not create clusters without limit."""
NAMELESS: Final = ""
"""The name of a new cluster. It has no id until its first broker has written one."""
LONGEST_START_S: Final = 60.0
"""The time after which a journal that is still being read no longer delays clusters that it has not mentioned."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A cluster. `heard_s` is the time of the last new record, or of the start, by the monotonic clock."""

    watch: Watch
    heard_s: float
    journals: set[str] = field(default_factory=set)
    is_live: bool = False

    @property
    def time(self) -> OwnTime:
        return self.watch.course.time


class Fleet:
    """The watched clusters. `wall` and `monotonic` are clocks of this machine, in seconds."""

    def __init__(
        self,
        rules: Rules,
        board: Board,
        journals: Iterable[str],
        *,
        wall: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.clusters: dict[str, Cluster] = {}
        self.unreadable: dict[str, int] = dict.fromkeys(journals, 0)
        """The number of unusable lines, by journal."""
        self.idle: dict[str, bool] = dict.fromkeys(self.unreadable, False)
        """True if a journal has nothing more to read for now."""
        self._rules = rules
        self._board = board
        self._wall = wall
        self._monotonic = monotonic
        self._began_s = self._looked_s = monotonic()
        self._is_started = False

    @property
    def is_caught_up(self) -> bool:
        return all(self.idle.values())

    def expect(self, cluster_id: str, stamp_us: int) -> None:
        """Expect a cluster that was known before the restart, so that its silence is noticed. `stamp_us`: the time of
        its last record."""
        self._cluster(cluster_id).time.stamp_us = stamp_us

    def cannot_read(self, journal: str) -> None:
        """Note that a journal cannot be read for now."""
        self.idle[journal] = True

    def take(self, journal: str, chunk: Chunk) -> None:
        """Handle the next lines of a journal."""
        self.idle[journal] = chunk.is_at_end
        for text in chunk.lines:
            entry = parse(Position(segment=journal, line=0), text)
            if isinstance(entry, Finding):
                self._cannot_use(journal, entry.problem)
            elif (entry.line.cluster_id or NAMELESS) not in self.clusters and len(self.clusters) >= MOST_CLUSTERS:
                self._cannot_use(journal, f"there are records of more than {MOST_CLUSTERS} clusters")
            elif entry.line.kind != Kind.REQUEST:  # a request is no sign of life of its controller
                self._see(journal, entry.line)

    def pass_time(self) -> None:
        """Let time pass for the clusters that have nothing left to read."""
        now_s, looked_s = self._monotonic(), self._looked_s
        self._looked_s = now_s
        self._is_started = self._is_started or self.is_caught_up or now_s - self._began_s > LONGEST_START_S
        for cluster_id, cluster in self.clusters.items():
            if not all(self.idle[journal] for journal in cluster.journals or self.idle):
                continue
            if self._is_started and not cluster.is_live and cluster.time.newest != NOWHERE:
                self._begin_to_tell(cluster_id, cluster)
            waited_us = round((now_s - max(looked_s, cluster.heard_s)) * 1_000_000)
            # This process may have been suspended, and then it could not have seen records either.
            alarms = cluster.watch.wait(min(waited_us, self._rules.alive_interval_us))
            self._post(cluster_id, alarms, is_told=cluster.is_live or cluster.time.newest == NOWHERE)

    def _see(self, journal: str, line: Line) -> None:
        cluster_id = line.cluster_id or NAMELESS
        if cluster_id != NAMELESS:
            self._forget_nameless(journal, line)
        cluster = self._cluster(cluster_id)
        cluster.journals.add(journal)
        newest = cluster.time.newest
        self._post(cluster_id, cluster.watch.see(make_seen(line)), is_told=cluster.is_live)
        if cluster.time.newest != newest:
            cluster.heard_s = self._monotonic()

    def _forget_nameless(self, journal: str, line: Line) -> None:
        """Forget the cluster without an id if a record gives it one, and end its alarms.

        The record is in the same journal, or in that of a later controller. The former one may never write again, so
        its journal alone would never name the cluster."""
        nameless = self.clusters.get(NAMELESS)
        if nameless is None or not (journal in nameless.journals or line.controller_epoch > nameless.time.newest[0]):
            return
        del self.clusters[NAMELESS]
        position = line.controller_epoch, line.seq
        for _, standing in self._board.find_by_cluster(NAMELESS):
            self._clear(NAMELESS, standing, line.event_time_us, line.cause, position)

    def _cluster(self, cluster_id: str) -> Cluster:
        if cluster_id not in self.clusters:
            watch = Watch(rules=self._rules, course=Course(), topics={}, troubles={})
            self.clusters[cluster_id] = Cluster(watch=watch, heard_s=self._monotonic())
        return self.clusters[cluster_id]

    def _post(self, cluster_id: str, alarms: Iterable[Alarm], *, is_told: bool) -> None:
        for alarm in alarms:
            if is_told:
                self._board.post(cluster_id, alarm, self._wall())

    def _begin_to_tell(self, cluster_id: str, cluster: Cluster) -> None:
        cluster.is_live = True
        for key, standing in self._board.find_by_cluster(cluster_id):
            if not _stands_still(cluster.watch, key, standing):
                self._clear(cluster_id, standing, cluster.time.stamp_us, None, cluster.time.newest)
        self._post(cluster_id, cluster.watch.list_raised(), is_told=True)

    def _clear(self, cluster_id: str, standing: Standing, at_us: int, cause: str | None, at: tuple[int, int]) -> None:
        over = standing.alarm._replace(state=CLEARED, at_us=at_us, cause=cause, position=at)
        self._board.post(cluster_id, over, self._wall())

    def _cannot_use(self, journal: str, problem: str) -> None:
        if not self.unreadable[journal]:
            log.warning("unusable lines of a journal are skipped", journal=journal, reason=problem)
        self.unreadable[journal] += 1


def _stands_still(watch: Watch, key: Key, standing: Standing) -> bool:
    """Return True if the problem of an earlier alarm still exists. Then mark the problem as raised, with its old
    beginning."""
    if key.problem == SILENT or key.topic is None or key.partition is None:
        return watch.course.silent_since_us is not None
    where = key.topic, key.partition
    trouble = watch.troubles.get(where)
    if trouble is None or trouble.problem != key.problem:
        return False
    watch.troubles[where] = trouble._replace(began_us=standing.alarm.began_us, is_raised=True)
    return True


def make_seen(line: Line) -> Seen:
    """Return the parts of a journal's line that the watch uses."""
    delta = line.delta
    config = delta.config if delta is not None and delta.config is not None else {}
    return Seen(
        controller_epoch=line.controller_epoch,
        seq=line.seq,
        at_us=line.event_time_us,
        kind=line.kind,
        cause=line.cause,
        topic=line.topic,
        partition=line.partition,
        leader=None if delta is None else delta.leader,
        in_sync=None if delta is None or delta.isr is None else len(delta.isr),
        min_isr=_number(config.get("min.insync.replicas")),
        assigned=None if delta is None or delta.replicas is None else len(delta.replicas),
        broker=line.broker,
    )


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
