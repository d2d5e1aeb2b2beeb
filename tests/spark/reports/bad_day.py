"""A cluster's bad day as tables: what the pipeline would have made of its journals, from a small model of the cluster.

Broker 5's disk is slow, so that some partitions are in sync on broker 3 alone when it is killed at 02:13:04; one
gets an unclean leader. At 05:40 the controller is killed, and 4 min 10 s are unknown. A reassignment stalls. At 20:00 all
brokers are restarted in turn. Further days are quieter.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas

Row = dict[str, Any]
NAMES = ("orders", "payments", "clicks", "payments.refunds", "audit-log", "search.index.updates")
RACKS = {1: "eu-west-1a", 2: "eu-west-1b", 3: "eu-west-1c", 4: "eu-west-1a", 5: "eu-west-1b", 6: "eu-west-1c"}
HOSTILE = "<script>alert('x')</script>\"&'\u202e\x07"
FIRST_DAY = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class State:
    leader: int
    isr: tuple[int, ...]
    cause: str = "controller_failover"
    unclean: bool = False
    inferred: bool | None = None


@dataclass(kw_only=True)
class Cluster:
    """Collects what happened; times are seconds of `began`."""

    name: str
    began: datetime
    days: int
    topics: Sequence[tuple[str, int]]
    away: set[int] = field(default_factory=set)
    history: dict[tuple[str, int], list[tuple[datetime, State | None]]] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    registered: dict[int, datetime] = field(default_factory=dict)
    seq: int = 0

    def __post_init__(self) -> None:
        for topic, count in self.topics:
            for partition in range(count):
                replicas = self.replicas((topic, partition))
                self.history[topic, partition] = [(self.began, State(leader=replicas[0], isr=replicas))]
        self.registered = dict.fromkeys(RACKS, self.began)

    @property
    def ended(self) -> datetime:
        return self.began + timedelta(days=self.days)

    def replicas(self, key: tuple[str, int]) -> tuple[int, ...]:
        first = (key[1] + sum(map(ord, key[0])) * 5) % 6
        return tuple((first + step) % 6 + 1 for step in (0, 1, 2))

    def state(self, key: tuple[str, int]) -> State:
        state = self.history[key][-1][1]
        assert state is not None
        return state

    def change(self, at: datetime, key: tuple[str, int], state: State | None) -> None:
        self.history[key].append((at, state))

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def shrink(self, at: datetime, broker: int, keys: Sequence[tuple[str, int]]) -> None:
        """The leader takes the replica out of the ISR."""
        for key in keys:
            old = self.state(key)
            if broker in old.isr and len(old.isr) > 1 and old.leader != broker:
                isr = tuple(b for b in old.isr if b != broker)
                self.change(at, key, State(leader=old.leader, isr=isr, cause="alter_partition"))

    def grow(self, at: datetime, broker: int, keys: Sequence[tuple[str, int]]) -> None:
        for key in keys:
            old = self.state(key)
            if broker in self.replicas(key) and broker not in old.isr and old.leader != -1:
                self.change(at, key, replace(old, isr=(*old.isr, broker), cause="alter_partition", unclean=False))

    def lose(self, at: datetime, broker: int, cause: str = "broker_failed") -> None:
        """Let the broker fail: every partition that it leads gets another leader of the ISR, or none. If it asked for
        that, this happens before it goes."""
        self.away.add(broker)
        self.interval(broker, self.registered.pop(broker), at)
        led = [key for key in self.history if self.state(key).leader == broker]
        moved = 0
        for number, key in enumerate(led):
            old, took = self.state(key), timedelta(milliseconds=40 + 7 * number)
            others = tuple(b for b in old.isr if b not in self.away)
            moved += bool(others)
            new = (
                State(leader=others[0], isr=others, cause=cause)
                if others
                else State(leader=-1, isr=old.isr, cause=cause)
            )
            self.change(at + took, key, new)
        for key in self.history:
            old = self.state(key)
            if broker in old.isr and old.leader != -1:
                isr = tuple(b for b in old.isr if b != broker)
                self.change(at + timedelta(milliseconds=900), key, replace(old, isr=isr, cause=cause, unclean=False))
        slowest = (40 + 7 * len(led)) / 1000
        self.tables["failovers"].append(
            {
                "broker": broker,
                "lost_at": at,
                "cause": "broker_failed",
                "partitions": len(led),
                "moved": moved,
                "last_moved_at": at + timedelta(seconds=slowest),
                "median_seconds": slowest / 2 + 0.02,
                "p99_seconds": slowest * 0.99,
                "max_seconds": slowest,
                "seq": self.next_seq(),
            }
        )
        if cause == "controlled_shutdown":
            nothing = dict.fromkeys(("last_moved_at", "median_seconds", "p99_seconds", "max_seconds"))
            self.tables["failovers"][-1].update(nothing, partitions=0, moved=0)

    def back(self, at: datetime, broker: int) -> None:
        """Let the broker return: it leads the partitions without a leader, and is in sync a minute later."""
        self.away.discard(broker)
        self.registered[broker] = at
        for key in self.history:
            old = self.state(key)
            if broker in self.replicas(key) and old.leader == -1:
                self.change(at + timedelta(seconds=1), key, State(leader=broker, isr=(broker,), cause="broker_started"))
        self.grow(at + timedelta(seconds=62), broker, list(self.history))
        for number, key in enumerate(key for key in self.history if self.replicas(key)[0] == broker):
            old = self.state(key)
            if broker in old.isr and old.leader != broker:
                late = at + timedelta(seconds=300, milliseconds=number)
                self.change(late, key, replace(old, leader=broker, cause="balance_due", unclean=False))

    def interval(self, broker: int, began: datetime, ended: datetime, *, is_last: bool = False) -> None:
        self.tables["broker_intervals"].append(
            {
                "broker": broker,
                "broker_epoch": self.next_seq(),
                "rack": RACKS[broker],
                "began": began,
                "ended": ended,
                "is_known": True,
                "is_last": is_last,
                "cause": "broker_started",
            }
        )


def bad_day(
    *, name: str = "prod-eu", days: int = 1, topics: Sequence[tuple[str, int]] = (), hostile: bool = False
) -> dict[str, list[Row]]:
    """Rows of all tables, by their names; columns that are not there are null."""
    topics = topics or tuple(zip(NAMES, (12, 8, 8, 4, 4, 4), strict=True))
    if hostile:
        topics = (*topics, (HOSTILE, 2))
    cluster = Cluster(name=name, began=FIRST_DAY, days=days, topics=topics)
    night(cluster, FIRST_DAY)
    spans(cluster)
    reassignments(cluster, FIRST_DAY)
    roll(cluster, FIRST_DAY + timedelta(hours=20))
    random = Random(7)
    for day in range(1, days):
        quiet_day(cluster, FIRST_DAY + timedelta(days=day), random)
    for broker, began in cluster.registered.items():
        cluster.interval(broker, began, cluster.ended, is_last=True)
    partition_intervals(cluster)
    daily(cluster)
    add_findings(cluster, FIRST_DAY)
    return {table: [complete(cluster, table, row) for row in rows] for table, rows in cluster.tables.items()}


def night(cluster: Cluster, day: datetime) -> None:
    keys = list(cluster.history)
    alone = [key for key in keys if cluster.replicas(key)[0] == 3][:5]
    for broker in (4, 5):
        cluster.shrink(day + timedelta(hours=1, minutes=50, seconds=broker), broker, alone)
    kill = day + timedelta(hours=2, minutes=13, seconds=4, milliseconds=120)
    cluster.lose(kill, 3)
    unclean = kill + timedelta(seconds=41)
    lost = alone[0]
    cluster.change(unclean, lost, State(leader=4, isr=(4,), cause="configs_changed", unclean=True))
    cluster.tables["unclean_elections"].append(
        {
            "topic": lost[0],
            "partition": lost[1],
            "elected_at": unclean,
            "leader": 4,
            "isr_before": [3],
            "leader_before": -1,
            "recovered_at": unclean + timedelta(seconds=2),
            "cause": "configs_changed",
            "seq": cluster.next_seq(),
        }
    )
    cluster.back(kill + timedelta(minutes=3, seconds=12), 3)
    for broker in (4, 5):
        cluster.grow(day + timedelta(hours=2, minutes=27, seconds=broker), broker, alone)
    flapping = [key for key in keys if 5 in cluster.replicas(key)[1:]][:6]
    for minute in range(0, 90, 9):
        at = day + timedelta(hours=14, minutes=20 + minute)
        cluster.shrink(at, 5, flapping)
        cluster.grow(at + timedelta(minutes=2 + minute % 4), 5, flapping)
    for number, key in enumerate(flapping):
        cluster.tables["isr_flaps_daily"].append(
            {
                "broker": 5,
                "topic": key[0],
                "partition": key[1],
                "day": day.date(),
                "shrinks": 11 - number,
                "expansions": 10 - number,
                "flaps": 10 - number,
                "out_of_sync_seconds": 1840.5 - 100 * number,
            }
        )


def spans(cluster: Cluster) -> None:
    killed, known = cluster.began + timedelta(hours=5, minutes=40), timedelta(minutes=4, seconds=10)
    terms = ((1001, cluster.began, killed, "silence"), (1002, killed + known, cluster.ended, "end"))
    for number, (controller, began, ended, ended_by) in enumerate(terms):
        common = {"controller_epoch": 17 + number, "controller_id": controller, "began": began, "ended": ended}
        cluster.tables["known_spans"].append(
            {**common, "span": number, "origin": "controller", "first_seq": 0, "last_seq": 4000, "ended_by": ended_by}
        )
        takeover = 250.0 if number else None
        cluster.tables["controllers"].append(
            {**common, "ended_by": ended_by, "takeover_seconds": takeover, "records": 4001, "leader_changes": 61}
        )


def roll(cluster: Cluster, at: datetime) -> None:
    for broker in RACKS:
        cluster.lose(at, broker, "controlled_shutdown")
        cluster.back(at + timedelta(seconds=35), broker)
        at += timedelta(minutes=8)


def quiet_day(cluster: Cluster, day: datetime, random: Random) -> None:
    if random.random() < 0.2:
        at, broker = day + timedelta(seconds=random.randrange(80000)), random.choice(list(RACKS))
        keys = [key for key in cluster.history if broker == cluster.replicas(key)[0]][: random.randrange(4)]
        for other in RACKS:
            cluster.shrink(at - timedelta(minutes=5), other, keys)
        cluster.lose(at, broker)
        cluster.back(at + timedelta(seconds=random.randrange(5, 600)), broker)
        for other in RACKS:
            cluster.grow(at + timedelta(minutes=30), other, keys)


def reassignments(cluster: Cluster, day: datetime) -> None:
    outcomes = ("done", "done", "done", "stalled", "cancelled", "done", "running")
    for number, outcome in enumerate(outcomes):
        topic, partition = list(cluster.history)[number]
        origin = cluster.replicas((topic, partition))
        began = day + timedelta(hours=9, minutes=11 * number)
        ended = {"stalled": timedelta(hours=8, minutes=31), "cancelled": timedelta(minutes=50)}.get(outcome)
        cluster.tables["reassignments"].append(
            {
                "topic": topic,
                "partition": partition,
                "began": began,
                "ended": None if outcome == "running" else began + (ended or timedelta(minutes=23 + 17 * number)),
                "origin": list(origin),
                "target": [*origin[1:], origin[0] % 6 + 1],
                "outcome": outcome,
                "longest_wait_seconds": 28000.0 if outcome == "stalled" else 412.0,
                "seq": cluster.next_seq(),
            }
        )


def partition_intervals(cluster: Cluster) -> None:
    """Return the intervals, cut by the unknown times, with the incidents."""
    hole = tuple(cluster.tables["known_spans"][number][side] for number, side in ((0, "ended"), (1, "began")))
    for (topic, partition), unordered in cluster.history.items():
        changes = sorted(unordered, key=lambda change: change[0])
        ends = [at for at, _ in changes[1:]] + [cluster.ended]
        causes = [state.cause if state else "topic_deleted" for _, state in changes[1:]] + [None]
        for (began, state), ended, next_cause in zip(changes, ends, causes, strict=True):
            if state is None or began >= ended:
                continue
            base = {"topic": topic, "partition": partition, "replicas": list(cluster.replicas((topic, partition)))}
            for first, last in ((began, min(ended, hole[0])), (max(began, hole[1]), ended)):
                if first < last:
                    add_interval(cluster, base, state, first, last, next_cause if last == ended else None)
        cluster.tables["partition_intervals"].append(
            {
                "topic": topic,
                "partition": partition,
                "began": hole[0],
                "ended": hole[1],
                "is_known": False,
                "is_last": False,
                "seq": cluster.next_seq(),
            }
        )


def add_interval(
    cluster: Cluster, base: Row, state: State, began: datetime, ended: datetime, next_cause: str | None
) -> None:
    is_last, seq = ended == cluster.ended, cluster.next_seq()
    cluster.tables["partition_intervals"].append(
        {
            **base,
            "began": began,
            "ended": ended,
            "is_known": True,
            "is_last": is_last,
            "leader": state.leader,
            "isr": list(state.isr),
            "min_insync_replicas": 2,
            "unclean": state.unclean,
            "cause": state.cause,
            "inferred": state.inferred,
            "seq": seq,
        }
    )
    problem = "leaderless" if state.leader == -1 else "under_min_isr" if len(state.isr) < 2 else None
    if problem:
        incident = {"topic": base["topic"], "partition": base["partition"], "problem": problem, "cause": state.cause}
        ended_by = None if is_last else next_cause
        cluster.tables["incidents"].append(
            {**incident, "began": began, "ended": ended, "is_last": is_last, "ended_by": ended_by, "seq": seq}
        )


def daily(cluster: Cluster) -> None:
    """Sums by day of the incidents and intervals above."""
    partitions = dict(cluster.topics)
    sums: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    causes: dict[tuple[str, int, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    led: dict[tuple[int, int], float] = defaultdict(float)
    for row in cluster.tables["incidents"]:
        for day, seconds in cut_by_day(cluster, row["began"], row["ended"]):
            sums[row["topic"], day][row["problem"]] += seconds
            causes[row["topic"], day, row["cause"]][row["problem"]] += seconds
    for row in cluster.tables["partition_intervals"]:
        for day, seconds in cut_by_day(cluster, row["began"], row["ended"]):
            if not row["is_known"]:
                sums[row["topic"], day]["unknown"] += seconds
            elif row["leader"] >= 0:
                led[row["leader"], day] += seconds
                sums[row["topic"], day]["alone"] += seconds * (len(row["isr"]) == 1)
                racks = {RACKS[broker] for broker in row["isr"]}
                sums[row["topic"], day]["one_rack"] += seconds * (len(racks) == 1)
    for topic in partitions:
        for day in range(cluster.days):
            add_day(cluster, topic, partitions[topic], day, sums[topic, day])
    for (topic, day, cause), its in causes.items():
        cluster.tables["downtime_by_cause"].append(
            {
                "namespace": topic.split(".")[0],
                "topic": topic,
                "day": (cluster.began + timedelta(days=day)).date(),
                "cause": cause,
                "leaderless_seconds": its["leaderless"],
                "under_min_isr_seconds": its["under_min_isr"],
                "partitions": partitions[topic],
            }
        )
    for (broker, day), seconds in led.items():
        cluster.tables["leadership_daily"].append(
            {
                "broker": broker,
                "day": (cluster.began + timedelta(days=day)).date(),
                "leader_seconds": seconds,
                "preferred_seconds": 86400.0 * sum(partitions.values()) / 6,
                "led_as_preferred_seconds": min(seconds, 86400.0 * sum(partitions.values()) / 6) * 0.97,
                "replica_seconds": 86400.0 * sum(partitions.values()) / 2,
                "skew": seconds / (86400.0 * sum(partitions.values()) / 6),
            }
        )


def add_day(cluster: Cluster, topic: str, partitions: int, day: int, its: dict[str, float]) -> None:
    exist = partitions * 86400.0
    known = exist - its["unknown"]
    common = {"topic": topic, "day": (cluster.began + timedelta(days=day)).date()}
    cluster.tables["availability_daily"].append(
        {
            **common,
            "namespace": topic.split(".")[0],
            "partitions": partitions,
            "partition_seconds": exist,
            "leaderless_seconds": its["leaderless"],
            "under_min_isr_seconds": its["under_min_isr"],
            "unknown_seconds": its["unknown"],
            "availability": 1 - its["leaderless"] / known,
            "write_availability": 1 - (its["leaderless"] + its["under_min_isr"]) / known,
        }
    )
    cluster.tables["exposure_daily"].append(
        {
            **common,
            "one_replica_seconds": its["alone"],
            "one_rack_seconds": its["one_rack"],
            "known_seconds": known,
            "most_partitions": partitions if its["alone"] else 0,
        }
    )


def cut_by_day(cluster: Cluster, began: datetime, ended: datetime) -> list[tuple[int, float]]:
    parts = []
    while began < ended:
        day = (began - cluster.began).days
        until = min(ended, cluster.began + timedelta(days=day + 1))
        parts.append((day, (until - began).total_seconds()))
        began = until
    return parts


def add_findings(cluster: Cluster, day: datetime) -> None:
    """An invariant that did not hold, and a history with flaws."""
    at = day + timedelta(hours=5, minutes=44, seconds=12)
    source = "controller-1001/17-0.jsonl"
    evidence = [
        {
            "controller_epoch": 17,
            "seq": 3100 + n,
            "event_time": at - timedelta(seconds=3 - n),
            "source": source,
            "kind": kind,
        }
        for n, kind in enumerate(("controller_elected", "leadership"))
    ]
    cluster.tables["violations"].append(
        {
            "invariant": "leader_is_alive",
            "topic": "payments",
            "partition": 3,
            "broker": 5,
            "seq": 12,
            "event_time": at,
            "detail": "Broker 5 was made leader 3 s after its registration ended; no record in between brings it back",
            "evidence": evidence,
            "inferred": False,
        }
    )
    findings = (
        ("gap", 1, 212, "212 records are missing before 17/3312: the controller dropped them as its disk was full"),
        ("unreadable", 4000, 1, "The line ends in the middle of a record: the process was killed while it wrote"),
        ("clock_went_back", None, 3, "The clock went back by up to 1.2 s: durations around it are too short"),
    )
    for problem, line, count, detail in findings:
        cluster.tables["findings"].append(
            {"problem": problem, "source": source, "line": line, "event_time": at, "count": count, "detail": detail}
        )


ALICE = {"principal": "User:alice", "address": "10.0.0.7"}
REFUSALS = 3_000


def add_clients(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Let alice have asked for the unclean election and the reassignments, and a stranger for much that was refused."""
    asked = "incremental_alter_configs"
    for table in ("partition_intervals", "incidents", "unclean_elections"):
        changed = [row for row in rows[table] if row.get("cause") == "configs_changed"]
        for row in changed:
            row |= {"cause": asked, **ALICE}
    for row in rows["reassignments"]:
        row |= ALICE
    at = FIRST_DAY + timedelta(hours=2)
    common = {"cluster_id": rows["incidents"][0]["cluster_id"], "controller_epoch": 17, "count": 1}
    done = {**common, **ALICE, "api": "IncrementalAlterConfigs", "outcome": "done", "resources": ["topic orders"]}
    stranger = {"principal": HOSTILE * 300, "address": HOSTILE, "client_id": HOSTILE, "api": "DeleteTopics"}
    refused = {**common, **stranger, "outcome": "refused", "error": "CLUSTER_AUTHORIZATION_FAILED"}
    rows["requests"] = [{**done, "event_time": at, "seq": 5, "resources_total": 9}]
    for seq in range(REFUSALS):
        of = {"resources": [HOSTILE], "resources_total": 1, "seq": 10 + seq}
        rows["requests"].append({**refused, "event_time": at + timedelta(seconds=seq), **of})
    return rows


def complete(cluster: Cluster, table: str, row: Row) -> Row:
    return {"cluster_id": cluster.name, "controller_epoch": 17, "correlation_id": "17-1", **row}


def frames(spark: SparkSession, rows: dict[str, list[Row]]) -> dict[str, DataFrame]:
    """Return every table that a report reads."""
    tables = (*schemas.ANSWERS, *schemas.LAYERS, schemas.VIOLATIONS)
    made = {}
    for table in tables:
        names = table.schema.fieldNames()
        values = [tuple(row.get(name) for name in names) for row in rows.get(table.name, [])]
        made[table.name] = spark.createDataFrame(values, table.schema)
    return made
