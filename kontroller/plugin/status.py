"""One screen of the present state: clusters, moves, drift, and objects that wait for a person."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Final

from controller_core.model.wording import format_count
from controller_operator.resources.cluster import NEARLY_FULL_PERCENT, BrokerRemoval, BrokerState
from controller_operator.resources.conditions import ConditionType
from kontroller.plugin.exit_codes import ExitCode, exit_code
from kontroller.plugin.objects import Seen
from kontroller.plugin.plan import summarize_plan
from kontroller.screen import format_section, format_table

_SHOWN: Final = 20
"""Rows of one table."""
_OVER: Final = frozenset({"Completed", "Failed", "Cancelled"})
_AS_ASKED: Final = frozenset({"Completed", "Cancelled"})
_BETWEEN_RUNS: Final = frozenset({"Scheduled", "Suspended"})
"""Phases of an object with a schedule that mean it is at rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """A KafkaCluster, and how many of its partitions need attention."""

    namespace: str
    name: str
    controller: int | None
    controller_kind: str | None
    brokers: int | None
    missing_brokers: int | None
    topics: int | None
    partitions: int | None
    offline: int | None
    under_replicated: int | None
    under_min_isr: int | None
    reassigning: int | None
    fullest_disk_percent: int | None
    """The highest of all brokers; None if no broker reports the usage of its disks."""
    ready: str
    degraded: str
    reason: str | None
    """The reason why the cluster is not Ready; if it is Ready, the reason why it is degraded, or else why it is
    Ready."""
    message: str | None

    @property
    def is_well(self) -> bool:
        """Return True if the cluster is Ready and not degraded."""
        return self.ready == "True" and self.degraded != "True"

    @property
    def is_healthy(self) -> bool:
        return self.is_well and not (self.offline or self.under_replicated or self.under_min_isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBroker:
    """A broker that is not registered."""

    namespace: str
    cluster: str
    broker: int | None
    since: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingBroker:
    """A broker that is to be removed from its cluster."""

    namespace: str
    cluster: str
    broker: int | None
    removal: str

    @property
    def next_step(self) -> str:
        """The next step for a person."""
        if self.removal == BrokerRemoval.EMPTY:
            return "it has no replicas and gets none: safe to stop for good"
        return f"it still holds replicas: kubectl kontroller drain {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk that is nearly full, or log directories that a broker cannot use."""

    namespace: str
    cluster: str
    broker: int | None
    directory: str | None
    used_percent: int | None
    total_bytes: int | None
    failed_directories: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A PartitionReassignment, PreferredElection or RebalancePlan that has not ended."""

    namespace: str
    name: str
    phase: str | None
    done: int
    total: int
    throttle: int | None
    """Bytes per second; None if there is no limit, or none yet."""
    time_left: str | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An object, with the reason and message of one of its conditions."""

    namespace: str
    name: str
    reason: str | None
    message: str | None
    plan: str | None = None
    """The steps that would follow a person's consent; None if there are none, or if no consent is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The whole overview."""

    clusters: tuple[ClusterHealth, ...]
    missing_brokers: tuple[MissingBroker, ...]
    brokers_to_remove: tuple[LeavingBroker, ...]
    disks: tuple[Disk, ...]
    moves: tuple[Move, ...]
    drifted: tuple[Said, ...]
    waiting_for_person: tuple[Said, ...]
    paused: tuple[Said, ...]
    objects: int
    not_ready: int

    @property
    def is_quiet(self) -> bool:
        healthy = all(cluster.is_healthy for cluster in self.clusters)
        return healthy and not (self.moves or self.drifted or self.paused or self.not_ready)

    def exit_code(self, *, fails_on_changes: bool) -> ExitCode:
        waits = bool(self.waiting_for_person)
        is_degraded = not all(cluster.is_well for cluster in self.clusters)
        return exit_code(
            waits=waits, changes=not self.is_quiet, fails_on_changes=fails_on_changes, is_degraded=is_degraded
        )

    def make_json(self) -> dict[str, Any]:
        return asdict(self)


def summarize(objects: Iterable[Seen]) -> Overview:
    """Return the summary of all objects."""
    seen = list(objects)
    return Overview(
        clusters=tuple(_make_health(each) for each in seen if each.key.kind == "KafkaCluster"),
        missing_brokers=tuple(chain.from_iterable(map(_find_missing_brokers, seen))),
        brokers_to_remove=tuple(chain.from_iterable(map(_find_leaving_brokers, seen))),
        disks=tuple(chain.from_iterable(map(_find_disks, seen))),
        moves=tuple(_make_move(each) for each in seen if _is_under_way(each)),
        drifted=tuple(_read_drift(each) for each in seen if each.holds(ConditionType.DRIFTED)),
        waiting_for_person=tuple(_read_said(each, ConditionType.STALLED) for each in seen if _needs_person(each)),
        paused=tuple(_read_said(each, ConditionType.PAUSED) for each in seen if each.is_paused),
        objects=len(seen),
        not_ready=sum(not _is_well(each) for each in seen),
    )


def lines(view: Overview, where: str | None) -> list[str]:
    """Return the screen. `where`: the namespace in question, None for all."""
    nowhere = "any namespace" if where is None else f"namespace {where} (--all-namespaces shows every namespace)"
    shown = _list_clusters(view.clusters) or [f"No KafkaCluster in {nowhere}."]
    shown += _list_missing(view.missing_brokers)
    shown += _list_leaving(view.brokers_to_remove)
    shown += _list_disks(view.disks)
    shown += _list_moves(view.moves)
    shown += _list_said("Changed elsewhere", view.drifted)
    shown += _list_said("Waits for a person", view.waiting_for_person)
    shown += _list_said("Paused", view.paused)
    return [*shown, "", f"{_summarize(view)}{'' if view.is_quiet else '; see above'}."]


def _summarize(view: Overview) -> str:
    ready = f"{view.objects - view.not_ready} of {view.objects} objects are ready"
    count = sum(cluster.degraded == "True" for cluster in view.clusters)
    verb = "is" if count == 1 else "are"
    return f"{ready}, {count} of {format_count(len(view.clusters), 'cluster')} {verb} degraded" if count else ready


def _list_clusters(clusters: Sequence[ClusterHealth]) -> list[str]:
    heads = ("NAMESPACE", "CLUSTER", "CONTROLLER", "BROKERS", "MISSING", "TOPICS", "PARTITIONS", "OFFLINE",
             "UNDER-REPLICATED", "UNDER-MIN-ISR", "MOVING", "DISK", "READY", "DEGRADED", "WHY")  # fmt: skip
    rows = [
        (c.namespace, c.name, _format_controller(c), c.brokers, c.missing_brokers, c.topics, c.partitions, c.offline,
         c.under_replicated, c.under_min_isr, c.reassigning, _format_usage(c.fullest_disk_percent),
         c.ready, c.degraded, c.message)
        for c in clusters
    ]  # fmt: skip
    return format_table(heads, rows)


def _format_controller(cluster: ClusterHealth) -> str | None:
    return None if cluster.controller is None else f"{cluster.controller} ({cluster.controller_kind})"


def _list_missing(missing: Sequence[MissingBroker]) -> list[str]:
    rows = [(each.namespace, each.cluster, each.broker, each.since) for each in missing[:_SHOWN]]
    heads = ("NAMESPACE", "CLUSTER", "BROKER", "SINCE")
    return format_section("Missing brokers", format_table(heads, rows), total=len(missing), shown=_SHOWN)


def _list_leaving(leaving: Sequence[LeavingBroker]) -> list[str]:
    rows = [(each.namespace, each.cluster, each.broker, each.removal, each.next_step) for each in leaving[:_SHOWN]]
    heads = ("NAMESPACE", "CLUSTER", "BROKER", "REMOVAL", "NEXT")
    return format_section("Brokers to be removed", format_table(heads, rows), total=len(leaving), shown=_SHOWN)


def _list_disks(disks: Sequence[Disk]) -> list[str]:
    rows = [
        (d.namespace, d.cluster, d.broker, d.directory, _format_usage(d.used_percent), d.total_bytes,
         ", ".join(d.failed_directories) or None)
        for d in disks[:_SHOWN]
    ]  # fmt: skip
    heads = ("NAMESPACE", "CLUSTER", "BROKER", "DIRECTORY", "USED", "BYTES", "FAILED")
    return format_section("Disks nearly full or failed", format_table(heads, rows), total=len(disks), shown=_SHOWN)


def _format_usage(percent: int | None) -> str | None:
    return None if percent is None else f"{percent}%"


def _list_moves(moves: Sequence[Move]) -> list[str]:
    rows = [
        (m.namespace, m.name, m.phase, f"{m.done}/{m.total}", _format_progress(m), m.throttle, m.time_left, m.message)
        for m in moves[:_SHOWN]
    ]
    heads = ("NAMESPACE", "OBJECT", "PHASE", "DONE", "PERCENT", "THROTTLE", "ETA", "WHY")
    return format_section("Under way", format_table(heads, rows), total=len(moves), shown=_SHOWN)


def _list_said(title: str, found: Sequence[Said]) -> list[str]:
    heads = ("NAMESPACE", "OBJECT", "REASON", "WHY", "PLAN")
    columns = len(heads) if any(each.plan for each in found) else len(heads) - 1
    rows = [(each.namespace, each.name, each.reason, each.message, each.plan)[:columns] for each in found[:_SHOWN]]
    return format_section(title, format_table(heads[:columns], rows), total=len(found), shown=_SHOWN)


def _format_progress(move: Move) -> str | None:
    return f"{100 * move.done // move.total}%" if move.total else None


def _make_health(each: Seen) -> ClusterHealth:
    controller, counts = each.status.get("controller") or {}, each.counts
    ready, degraded = each.condition(ConditionType.READY), each.condition(ConditionType.DEGRADED)
    trouble = degraded if each.holds(ConditionType.READY) and each.holds(ConditionType.DEGRADED) else ready
    is_well = trouble is ready and each.holds(ConditionType.READY)
    return ClusterHealth(
        namespace=each.key.namespace,
        name=each.key.name,
        controller=controller.get("id"),
        controller_kind=controller.get("kind"),
        brokers=counts.get("brokers"),
        missing_brokers=counts.get("missingBrokers"),
        topics=counts.get("topics"),
        partitions=counts.get("partitions"),
        offline=counts.get("offline"),
        under_replicated=counts.get("underReplicated"),
        under_min_isr=counts.get("underMinIsr"),
        reassigning=counts.get("reassigning"),
        fullest_disk_percent=max(_read_percents(each), default=None),
        ready=ready.get("status", "Unknown"),
        degraded=degraded.get("status", "Unknown"),
        reason=trouble.get("reason"),
        message=None if is_well else trouble.get("message", "no operator has seen it yet"),
    )


def _read_brokers(each: Seen) -> Sequence[dict[str, Any]]:
    return each.status.get("brokers") or () if each.key.kind == "KafkaCluster" else ()


def _find_missing_brokers(each: Seen) -> Iterator[MissingBroker]:
    for row in _read_brokers(each):
        if row.get("state") == BrokerState.MISSING:
            yield MissingBroker(
                namespace=each.key.namespace, cluster=each.key.name, broker=row.get("id"), since=row.get("since")
            )


def _find_leaving_brokers(each: Seen) -> Iterator[LeavingBroker]:
    for row in _read_brokers(each):
        if (removal := row.get("removal")) is not None:
            yield LeavingBroker(
                namespace=each.key.namespace, cluster=each.key.name, broker=row.get("id"), removal=removal
            )


def _read_percents(each: Seen) -> Iterator[int]:
    return (row["disk"]["usedPercent"] for row in _read_brokers(each) if row.get("disk"))


def _find_disks(each: Seen) -> Iterator[Disk]:
    nearly_full = each.raw.get("spec", {}).get("diskNearlyFullPercent", NEARLY_FULL_PERCENT)
    for row in _read_brokers(each):
        disk, failed = row.get("disk") or {}, tuple(row.get("failedLogDirectories") or ())
        if failed or disk.get("usedPercent", 0) >= nearly_full:
            yield Disk(
                namespace=each.key.namespace,
                cluster=each.key.name,
                broker=row.get("id"),
                directory=disk.get("directory"),
                used_percent=disk.get("usedPercent"),
                total_bytes=disk.get("totalBytes"),
                failed_directories=failed,
            )


def _is_under_way(each: Seen) -> bool:
    if each.key.kind not in ("PartitionReassignment", "PreferredElection", "RebalancePlan"):
        return False
    phase = each.status.get("phase")
    may_rest = each.key.kind == "PreferredElection" or phase == "Scheduled" or "lastRunResult" in each.status
    return phase not in _OVER and not (may_rest and phase in _BETWEEN_RUNS)


def _make_move(each: Seen) -> Move:
    counts = each.counts
    is_move = each.key.kind != "PreferredElection"
    done = counts.get("done", 0) if is_move else counts.get("elected", 0) + counts.get("notNeeded", 0)
    return Move(
        namespace=each.key.namespace,
        name=each.short,
        phase=each.status.get("phase"),
        done=done,
        total=counts.get("total", done + counts.get("moves", 0)),
        throttle=(each.status.get("throttle") or {}).get("bytesPerSecond"),
        time_left=(each.status.get("progress") or {}).get("timeLeft"),
        message=each.condition(ConditionType.READY).get("message"),
    )


def _read_drift(each: Seen) -> Said:
    differences = each.status.get("drift") or ()
    keys = ", ".join(f"{d.get('key')} is {d.get('live')}, not {d.get('desired')}" for d in differences[:5])
    more = f" and {len(differences) - 5} more" if len(differences) > 5 else ""
    condition = each.condition(ConditionType.DRIFTED)
    said = keys + more or condition.get("message")
    return Said(namespace=each.key.namespace, name=each.short, reason=condition.get("reason"), message=said)


def _needs_person(each: Seen) -> bool:
    return each.holds(ConditionType.STALLED) or each.awaits_approval


def _is_well(each: Seen) -> bool:
    """Return True if the object is Ready, or has ended as somebody wanted."""
    return each.holds(ConditionType.READY) or each.status.get("phase") in _AS_ASKED


def _read_said(each: Seen, type_: ConditionType) -> Said:
    condition = each.condition(type_) or each.condition(ConditionType.READY)
    return Said(
        namespace=each.key.namespace,
        name=each.short,
        reason=condition.get("reason"),
        message=condition.get("message"),
        plan=summarize_plan(each),
    )
