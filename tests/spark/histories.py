"""Journals of random clusters, written by the production encoder.

For any seed, the state is known afterwards. A `RandomCluster` acts like controllers, brokers and users, and keeps the
controller's guarantees: epochs rise, an elected leader was in sync unless the election was unclean, topics are known
before their partitions. So an audit of it must find nothing, and the fold of its lines must equal its live state.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from controller_core.controller.recording.term_journal import copy_state
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.batches import (
    Alive,
    Batch,
    Committed,
    Context,
    Dropped,
    Elected,
    RecorderStarted,
    Resigned,
    Snapshot,
    Uptime,
)
from controller_core.journal.fold import Folded, fold
from controller_core.journal.reader import Position, check, parse
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
)
from kontroller.history.schemas import CONFIG_INTERVALS, EVENTS, FINDINGS, KNOWN_SPANS, LAYERS, LINES, Table
from kontroller.history.store import Store
from kontroller.history.transforms import layers
from kontroller.history.transforms import lines as journal_lines
from kontroller.history.transforms.accounts.once import deduplicate
from kontroller.history.transforms.config_intervals import config_intervals
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.continuity.set_clocks import correct_stamps
from kontroller.history.transforms.known_spans import find_known_spans

START_US = 1_767_225_600_000_000  # 2026-01-01
ALIVE_INTERVAL_MS = 4 * 3_600_000
"""These histories are quiet for hours, and that is no silence."""
BROKERS = tuple(BrokerId(number) for number in range(1, 6))
NAMES = tuple(TopicName(name) for name in ("orders", "billing.invoices", "audit", "übung"))


class RandomCluster:
    """A cluster, its controllers one after the other, and the journal that they kept together."""

    def __init__(self, seed: int, *, cluster_id: str, has_gaps: bool = True, is_recorded: bool = False) -> None:
        self.lines: list[bytes] = []
        self.state = ClusterState(is_journaled=True)
        self._rng = random.Random(seed)
        self._cluster_id = cluster_id
        self._has_gaps = has_gaps
        self._is_recorded = is_recorded
        self._encoder = RecordEncoder()
        self._now_us = START_US + self._rng.randrange(86_400) * 1_000_000
        self._zxid = 100
        self._event = 0
        self._epoch = self._rng.randrange(1, 5)
        self._controller = BrokerId(100)
        for broker in BROKERS[: self._rng.randrange(3, 6)]:
            self._register(broker)
        self._begin_term()

    def live(self, events: int) -> None:
        """Let that many events happen, and make the state known afterwards."""
        for _ in range(events):
            self._now_us += self._rng.choice((3, 40, 900, 20_000, 300_000)) * self._rng.randrange(1, 50) * 1000
            weights, causes, happenings = zip(*self._happenings(), strict=True)
            chosen = self._rng.choices(range(len(weights)), weights=weights)[0]
            cause, happening = causes[chosen], happenings[chosen]
            self._event += 1
            happening()
            self._commit(cause)
        self._event += 1
        self._write(Snapshot(context=self._context("journal_due"), state=copy_state(self.state)))

    @property
    def checksum(self) -> int:
        """Return the checksum of the live state."""
        image = fold_lines(
            RecordEncoder().lines(Snapshot(context=self._context("test"), state=copy_state(self.state)))
        ).image
        assert image is not None
        return image.checksum()

    # The possible events, and the weight of each

    def _happenings(self) -> Iterator[tuple[int, str, Callable[[], None]]]:
        yield 10, "broker_failed", self._fail
        yield 14, "broker_started", self._start
        yield 30, "alter_partition", self._alter_isr
        yield 10, "balance_due", self._elect
        yield 6, "create_topics", self._create
        yield 2, "topic_deletions_requested", self._delete
        yield 6, "reassignments_requested", self._reassign
        yield 6, "broker_answered", self._end_reassignments
        yield 5, "configs_changed", self._configure
        yield 2, "log_dirs_failed", self._lose_a_disk
        yield 1, "features_changed", self._finalize
        yield 6, "journal_due", self._say_alive
        yield 4, "journal_due", self._snapshot
        yield 3, "controller_failover", self._fail_over
        if self._has_gaps:
            yield 2, "alter_partition", self._lose_records
        if self._is_recorded:
            yield 2, "controller_failover", self._restart_recorder

    def _fail(self) -> None:
        live = list(self.state.brokers)
        if len(live) > 1:
            gone = self._rng.choice(live)
            self.state.remove_broker(gone)
            self._react()

    def _start(self) -> None:
        absent = [broker for broker in BROKERS if broker not in self.state.brokers]
        self._register(self._rng.choice(absent or BROKERS))
        self._react()

    def _alter_isr(self) -> None:
        """A leader shrinks or expands its ISR, which does not raise the leader epoch."""
        for partition, state in self._some_led():
            decided = state.leader_and_isr
            live = [broker for broker in self.state.assignment(partition).replicas if broker in self.state.brokers]
            isr = tuple(b for b in live if b == decided.leader or self._rng.random() < 0.7)
            self._put(partition, decided.leader, isr or decided.isr, raises_epoch=False)

    def _elect(self) -> None:
        for partition, state in self._some_led():
            decided = state.leader_and_isr
            preferred = self.state.assignment(partition).preferred
            if preferred in decided.isr and preferred in self.state.brokers and preferred != decided.leader:
                self._put(partition, preferred, decided.isr)

    def _create(self) -> None:
        absent = [name for name in NAMES if name not in self.state.topics]
        if not absent:
            return
        name = self._rng.choice(absent)
        topic_id = None if self._rng.random() < 0.1 else TopicId(UUID(int=self._rng.getrandbits(128), version=4))
        self.state.add_topic(name, topic_id, self._next_zxid())
        for number in range(self._rng.randrange(1, 4)):
            partition = TopicPartition(name, PartitionId(number))
            self.state.set_assignment(partition, ReplicaAssignment(replicas=self._replicas()))
        self._react()

    def _delete(self) -> None:
        if self.state.topics:
            self.state.remove_topic(self._rng.choice(list(self.state.topics)))

    def _reassign(self) -> None:
        for partition in self._some_partitions():
            old, target = self.state.assignment(partition), self._replicas()
            if old.is_being_reassigned or set(target) == set(old.replicas):
                continue
            adding = tuple(b for b in target if b not in old.replicas)
            removing = tuple(b for b in old.replicas if b not in target)
            full = (*target, *(b for b in old.replicas if b not in target))
            self.state.set_assignment(
                partition, ReplicaAssignment(replicas=full, adding=adding, removing=removing, origin_order=old.replicas)
            )
            if state := self.state.states.get(partition):
                self._put(partition, state.leader_and_isr.leader, state.leader_and_isr.isr)

    def _end_reassignments(self) -> None:
        for partition in self.state.all_partitions():
            running = self.state.assignment(partition)
            state = self.state.states.get(partition)
            if not running.is_being_reassigned or state is None or not state.leader_and_isr.has_leader:
                continue
            leader, isr = state.leader_and_isr.leader, state.leader_and_isr.isr
            if set(running.target) <= set(isr):
                self.state.set_assignment(partition, ReplicaAssignment(replicas=running.target))
                kept = tuple(broker for broker in isr if broker in running.target)
                self._put(partition, leader if leader in kept else kept[0], kept)

    def _configure(self) -> None:
        value = {"min.insync.replicas": str(self._rng.randrange(1, 4))}
        broker = self._rng.choice((None, *BROKERS))
        if self.state.topics and self._rng.random() < 0.6:
            name = self._rng.choice(list(self.state.topics))
            is_set = name in self.state.topic_configs
            self.state.set_topic_config(name, {} if is_set else {"cleanup.policy": "compact", **value})
        else:
            self.state.set_broker_config(broker, {} if broker in self.state.broker_configs else value)

    def _lose_a_disk(self) -> None:
        broker = self._rng.choice(list(self.state.brokers) or list(BROKERS))
        held = [partition for partition in self.state.states if broker in self.state.assignment(partition).replicas]
        self.state.set_failed_replicas(broker, frozenset(self._rng.sample(held, min(len(held), 2))))

    def _finalize(self) -> None:
        before = self.state.finalized_features
        is_lost = before is not None and self._rng.random() < 0.3
        levels = {"metadata.version": self._rng.randrange(1, 9), "a.feature": 1}
        found = None if is_lost else FinalizedFeatures(features=levels, epoch=self._event)
        self.state.set_finalized_features(found)

    def _say_alive(self) -> None:
        self._write(Alive(context=self._context("journal_due")))

    def _snapshot(self, cause: str = "journal_due") -> None:
        self._write(Snapshot(context=self._context(cause), state=copy_state(self.state)))

    def _lose_records(self) -> None:
        """Drop records of events. A snapshot follows, at once or after more records that nobody can place."""
        context = self._context("alter_partition")
        self._alter_isr()
        self._fail()
        dropped = self.state.changes.take()
        self._write(Dropped(context=context, count=max(len(dropped), 1)))
        if self._rng.random() < 0.5:
            self._alter_isr()
            self._commit("alter_partition")
        self._now_us += 1_000_000
        self._snapshot()

    def _fail_over(self) -> None:
        how = self._rng.random()
        if how < 0.4:
            self._write(Resigned(context=self._context("controller_stopped"), reason="the process is stopped"))
        elif how < 0.6:
            self._snapshot()
            del self.lines[-self._rng.randrange(1, 4) :]  # killed in the middle of a snapshot
        self._now_us += self._rng.randrange(1, 600) * 1_000_000
        self.state.changes.is_open = False  # nobody writes down the next events
        self._rng.choice((self._fail, self._start, self._delete, self._create, self._alter_isr))()
        self._begin_term()

    def _restart_recorder(self) -> None:
        self.state.changes.is_open = False
        self._alter_isr()
        self._start()
        self.state.changes.is_open = True
        self._write(RecorderStarted(context=self._context("controller_failover")))
        self._snapshot()

    # The encoding of records

    def _begin_term(self) -> None:
        self._epoch += 1
        self._event = 0
        self._controller = BrokerId(100 + self._epoch % 3)
        start = RecorderStarted if self._is_recorded else Elected
        self._write(start(context=self._context("controller_failover"), alive_interval_ms=ALIVE_INTERVAL_MS))
        self.state.changes.is_open = True
        self._snapshot("controller_failover")
        self._now_us += self._rng.randrange(5) * 1000
        self._react()
        self._commit("controller_failover")

    def _commit(self, cause: str) -> None:
        changes = self.state.changes.take()
        if changes:
            self._write(Committed(context=self._context(cause), changes=changes))

    def _write(self, batch: Batch | Dropped) -> None:
        self.lines += self._encoder.lines(batch)

    def _context(self, cause: str) -> Context:
        return Context(
            cluster_id=self._cluster_id,
            controller_id=self._controller,
            controller_epoch=ControllerEpoch(self._epoch),
            event_time_us=self._now_us,
            uptime=Uptime(f"{self._controller:08x}", self._now_us - START_US),
            took_us=self._rng.randrange(5_000_000) if self._event else None,
            cause=cause,
            correlation_id=f"{self._epoch}-{self._event}",
            is_inferred=self._is_recorded,
        )

    # The actions of a controller

    def _react(self) -> None:
        """Elect a leader for each partition that lacks one: a replica in sync if there is one, else sometimes an
        unclean leader, else none."""
        for partition in self.state.all_partitions():
            replicas = self.state.assignment(partition).replicas
            live = tuple(broker for broker in replicas if broker in self.state.brokers)
            state = self.state.states.get(partition)
            if state is None:
                if live:
                    self._put(partition, live[0], live)
                continue
            decided = state.leader_and_isr
            if decided.leader in live:
                in_sync = tuple(broker for broker in decided.isr if broker in live)
                if in_sync != decided.isr:
                    self._put(partition, decided.leader, in_sync)
                continue
            clean = tuple(broker for broker in live if broker in decided.isr)
            if clean:
                self._put(partition, clean[0], clean)
            elif live and self._rng.random() < 0.3:
                self._put(partition, live[0], live[:1], recovery=LeaderRecoveryState.RECOVERING)
            elif decided.has_leader:
                self._put(partition, NO_LEADER, decided.isr[:1])

    def _put(
        self,
        partition: TopicPartition,
        leader: BrokerId,
        isr: tuple[BrokerId, ...],
        *,
        raises_epoch: bool = True,
        recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED,
    ) -> None:
        before = self.state.states.get(partition)
        version = -1 if before is None else before.partition_epoch
        leader_epoch = -1 if before is None else before.leader_and_isr.leader_epoch
        decided = LeaderAndIsr(
            leader=leader,
            isr=isr,
            leader_epoch=LeaderEpoch(leader_epoch + int(raises_epoch or before is None)),
            leader_recovery_state=recovery,
        )
        state = PartitionState(
            leader_and_isr=decided,
            controller_epoch=ControllerEpoch(self._epoch),
            partition_epoch=PartitionEpoch(version + 1),
        )
        self.state.set_states({partition: state})

    def _register(self, broker: BrokerId) -> None:
        features = {"a.feature": FeatureRange(min_version=1, max_version=3)} if self._rng.random() < 0.3 else {}
        registered = Broker(
            id=broker,
            epoch=BrokerEpoch(self._next_zxid()),
            endpoints=(Endpoint(listener="PLAIN", security_protocol="PLAINTEXT", host=f"b{broker}", port=9092),),
            rack=None if broker == BROKERS[-1] else f"rack-{broker % 2}",
            features=features,
        )
        self.state.add_broker(registered)

    def _some_partitions(self) -> list[TopicPartition]:
        return [partition for partition in self.state.all_partitions() if self._rng.random() < 0.4]

    def _some_led(self) -> list[tuple[TopicPartition, PartitionState]]:
        found = [(partition, self.state.states.get(partition)) for partition in self._some_partitions()]
        return [(partition, state) for partition, state in found if state and state.leader_and_isr.has_leader]

    def _replicas(self) -> tuple[BrokerId, ...]:
        return tuple(self._rng.sample(BROKERS, self._rng.randrange(1, 4)))

    def _next_zxid(self) -> int:
        self._zxid += self._rng.randrange(1, 9)
        return self._zxid


def history(seed: int, *, cluster_id: str, events: int = 200, **how: bool) -> list[bytes]:
    """The journal of a random cluster, each line with its end, in which nothing is wrong."""
    return random_cluster(seed, cluster_id=cluster_id, events=events, **how).lines


def random_cluster(seed: int, *, cluster_id: str, events: int = 200, **how: bool) -> RandomCluster:
    cluster = RandomCluster(seed, cluster_id=cluster_id, **how)
    cluster.live(events)
    return cluster


def fold_lines(lines: Iterable[bytes]) -> Folded:
    """Fold lines with the pure fold, which does not use Spark."""
    numbered = enumerate(lines, start=1)
    return fold(check(parse(Position(segment="memory", line=number), text.rstrip(b"\n")) for number, text in numbered))


def make_lines(spark: SparkSession, *journals: Iterable[bytes]) -> DataFrame:
    """Journals as the sources give them, each in a file and folder of its own, named by its place."""
    rows = [
        (line.decode().rstrip("\n"), f"/journal-{number}/segment.jsonl", f"/journal-{number}", None)
        for number, lines in enumerate(journals)
        for line in lines
    ]
    return spark.createDataFrame(rows, LINES)


def make_events(spark: SparkSession, *journals: Iterable[bytes]) -> DataFrame:
    """The events of journals, by the production transforms."""
    return ingest_lines(make_lines(spark, *journals))[0]


def ingest_lines(lines: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return events and findings of lines, by the production transforms. The checked lines are kept first, as a job
    does."""
    recorded, unreadable = journal_lines.judge(journal_lines.check_lines(lines).localCheckpoint())
    events, repeated = deduplicate(correct_stamps(recorded.localCheckpoint()))
    return events, unreadable.unionByName(repeated)


def keep_lines(spark: SparkSession, lines: DataFrame, folder: Path) -> Store:
    """The layers of lines, written step by step as a job does."""
    store = Store(spark=spark, location=str(folder))
    lines.write.parquet(str(folder / "lines"))
    events, left_out = ingest_lines(spark.read.schema(LINES).parquet(str(folder / "lines")))
    events.write.parquet(store.path(EVENTS))
    left_out.write.parquet(str(folder / "left_out"))
    events = rows(store, EVENTS)
    find_known_spans(marks(events)).write.parquet(store.path(KNOWN_SPANS))
    left_out = spark.read.schema(FINDINGS.schema).parquet(str(folder / "left_out"))
    spans = rows(store, KNOWN_SPANS)
    config_intervals(events, spans).write.parquet(store.path(CONFIG_INTERVALS))
    derived = layers.derive(events, left_out, marks(events), spans, rows(store, CONFIG_INTERVALS))
    for table in LAYERS:
        if table not in (EVENTS, KNOWN_SPANS, CONFIG_INTERVALS):
            derived.get_table(table).write.parquet(store.path(table))
    return store


def rows(store: Store, table: Table) -> DataFrame:
    return store.spark.read.schema(table.schema).parquet(store.path(table))
