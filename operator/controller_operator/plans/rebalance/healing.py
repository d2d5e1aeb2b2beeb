"""The mode heal of RebalancePlans: which brokers have been gone for long, and which are new.

The status of the KafkaCluster remembers since when a broker is missing, and its rack, so a restarted operator knows it.
A broker may have come and gone while nobody looked. So it must also have been seen as gone for some minutes without
interruption. Many brokers, or all of a rack, seldom fail together: more likely a network does, and then copies of
their replicas would be the wrong answer. New brokers are those that the plan's status does not know.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some, name_all, name_subject
from controller_operator.plans.outcome import Verdict
from controller_operator.resources.cluster import BrokerState, BrokerStatus
from controller_operator.resources.conditions import Reason
from controller_operator.resources.rebalancing.rebalance_plan import (
    MAX_KNOWN_BROKERS,
    Healing,
    HealingRules,
    PlanMode,
    RebalancePlan,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

_LONGEST_GAP: Final = timedelta(minutes=5)
"""Time between two decisions from which on the cluster counts as not seen in between."""
_SETTLED: Final = timedelta(minutes=5)
"""Time for which a broker must be seen as gone, or as new, without interruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The time for which decisions have seen the cluster. It is lost with the process."""

    since: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The need for healing."""

    healing: Healing | None = None
    """The task of the next run; None: nothing to heal."""
    at: datetime | None = None
    """The time from which on the run may begin."""
    words: str = "no broker is gone, and none is new"
    refusal: Verdict | None = None


def go_on_seeing(before: Sight | None, now: datetime) -> Sight:
    """Return the sight that includes this moment. A clock that was set begins it again."""
    is_continued = before is not None and before.since <= before.last <= now <= before.last + _LONGEST_GAP
    return Sight(since=before.since if before is not None and is_continued else now, last=now)


def find_known_brokers(known: Iterable[BrokerId] | None, view: Snapshot) -> tuple[BrokerId, ...]:
    """Return the brokers that are not new. At first these are all; one that has gone without replicas is forgotten."""
    present = view.brokers.keys() | view.holders
    return tuple(sorted(present if known is None else present & set(known)))[:MAX_KNOWN_BROKERS]


def find_need(
    resource: RebalancePlan, view: Snapshot, rows: Sequence[BrokerStatus], sight: Sight | None, now: datetime
) -> Need:
    """Return the need for healing. Without `sight`, a broker need not have been seen as gone without interruption."""
    rules, scope = resource.spec.heal or HealingRules(), resource.spec.scope
    after = timedelta(minutes=rules.after_minutes)
    settled = min(after, _SETTLED)
    excluded = set((scope.exclude_brokers if scope is not None else None) or ())
    racks = scope.racks if scope is not None else None
    gone = [
        row
        for row in rows
        if row.state is BrokerState.MISSING and row.id in view.holders and row.id not in view.brokers
    ]
    if left := [row for row in gone if row.id not in excluded and (racks is None or row.rack in racks)]:
        due_at = {row.id: (row.since or now) + after for row in left}
        if sight is not None:
            due_at = {broker: max(at, sight.since + settled) for broker, at in due_at.items()}
        first = min(due_at.values())
        due = sorted(broker for broker, at in due_at.items() if at <= max(first, now))
        if first <= now and (refusal := _refuse(gone, view, rules)):
            return Need(refusal=refusal)
        words = f"{name_subject('broker', due)} gone since {min(row.since or now for row in left):%Y-%m-%dT%H:%M:%SZ}"
        return Need(healing=Healing(mode=PlanMode.DRAIN, brokers=tuple(due)), at=first, words=words)
    known = resource.status.known_brokers or ()
    fills = rules.fill_new_brokers and len(known) < MAX_KNOWN_BROKERS
    outside = {each.id for each in view.brokers.values() if racks is not None and each.rack not in racks}
    new = sorted(view.brokers.keys() - {*known, *excluded, *view.closed, *outside}) if fills else []
    if not new:
        return Need()
    at = _find_settled_time(new, rows, settled, now)
    words = f"{name_subject('broker', new)} new"
    return Need(healing=Healing(mode=PlanMode.EXPAND, brokers=tuple(new)), at=at, words=words)


def _find_settled_time(
    new: Sequence[BrokerId], rows: Sequence[BrokerStatus], settled: timedelta, now: datetime
) -> datetime:
    """Return the time from which on new brokers are filled, all of them together."""
    since = {row.id: row.since for row in rows if row.state is BrokerState.REGISTERED and row.since is not None}
    is_cut = len(rows) >= MAX_STATUS_ENTRIES
    return max((min(since[broker], now) + settled if broker in since else now + (timedelta() if is_cut else settled))
               for broker in new)  # fmt: skip


def explain_end(healing: Healing, need: Need, view: Snapshot) -> str | None:
    """Return why a run that heals has no further purpose; None if it has one."""
    if need.refusal is not None:
        return need.refusal.message
    now = need.healing
    if now is not None and now.mode is healing.mode:
        is_filling_more = now.mode is PlanMode.EXPAND and set(healing.brokers) <= set(now.brokers)
        if now.brokers == healing.brokers or is_filling_more:
            return None
    if healing.mode is PlanMode.DRAIN and (back := [each for each in healing.brokers if each in view.brokers]):
        return f"{name_all('broker', back)} came back"
    if healing.mode is PlanMode.DRAIN and not view.holders & {*healing.brokers}:
        return (
            f"{name_all('broker', healing.brokers)} {'holds' if len(healing.brokers) == 1 else 'hold'} no replicas now"
        )
    return f"other brokers are gone or new than {list_some(healing.brokers)}"


def _refuse(gone: Sequence[BrokerStatus], view: Snapshot, rules: HealingRules) -> Verdict | None:
    """Return why nothing is healed although brokers have been gone for long."""
    names = name_all("broker", [row.id for row in gone])
    if len(gone) > rules.max_brokers:
        message = (
            f"{len(gone)} brokers are gone, and spec.heal.maxBrokers is {rules.max_brokers}, so nothing is moved: {names}."
            " Bring them back, or raise it"
        )
        return Verdict.make_stalled(Reason.TOO_MANY_BROKERS_GONE, message)
    racks = [row.rack for row in gone if row.rack is not None]
    whole = sorted({rack for rack in racks if racks.count(rack) > 1} - {each.rack for each in view.brokers.values()})
    if whole and not rules.whole_racks:
        message = (
            f"all brokers of {name_all('rack', whole)} are gone, so nothing is moved: {names}. Bring them back, or set"
            " spec.heal.wholeRacks"
        )
        return Verdict.make_stalled(Reason.TOO_MANY_BROKERS_GONE, message)
    return None
