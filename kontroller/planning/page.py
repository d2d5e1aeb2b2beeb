"""A plan as an HTML page: brokers before and after, moves with their reasons, and everything that is unknown.

The page is one file, and its size is bounded: it has the brokers that change most, and the largest moves of the first
batches. The same plan gives the same page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final

import numpy as np
from jinja2 import Environment

from controller_planner.estimate import compute_busiest
from controller_planner.goals import Mode
from controller_planner.plan import Move, Plan, Reason
from controller_planner.resources import find_unmeasured
from kontroller.pages.frame import make_environment
from kontroller.planning.tables import (
    describe_shortages,
    format_bytes,
    format_load,
    format_taken,
    list_shown,
    name_state,
)
from kontroller.screen import format_duration

MOST_BROKERS: Final = 300
MOST_MOVES: Final = 1_000
MOST_BATCHES: Final = 100
MOST_LINES: Final = 100
_WIDTH: Final = 99
"""The width of the largest bar, of 100: the mark of a share has room beside it."""
_TITLES: Final = {
    Mode.REBALANCE: "Rebalance",
    Mode.DRAIN: "Drain",
    Mode.RELIEVE: "Relief of full disks",
    Mode.EXPAND: "Expansion",
    Mode.REPLICATION_FACTOR: "Change of the replication factor",
    Mode.SPREAD: "Spread of topics",
    Mode.LEADERS_ONLY: "New leaders",
}
_RESOURCES: Final = {
    "replicas": "Replicas",
    "disk": "Disk",
    "in": "Bytes in",
    "out": "Bytes out",
    "leaders": "Leaders",
}
_REASONS: Final = {
    Reason.DRAIN: "A replica leaves a broker that is drained.",
    Reason.RACK: "A rack has more replicas of the partition than it must.",
    Reason.REPLICATION_FACTOR: "The partition gets another number of replicas.",
    Reason.CAPACITY: "A broker's disks have more than their capacity.",
    Reason.REPLICAS: "A broker has more replicas than its share.",
    Reason.DISK: "A broker has more bytes on its disks than its share.",
    Reason.IN: "A broker receives more bytes than its share.",
    Reason.OUT: "A broker sends more bytes than its share.",
    Reason.LEADERS: "A broker leads more partitions than its share.",
    Reason.TOPIC_SPREAD: "A broker has more replicas of the topic than others.",
    Reason.RELIEF: "A replica leaves a broker whose disks are too full.",
    Reason.EXPOSURE: "Two replicas of the partition are on brokers that failed together.",
    Reason.NEXT_LEADER: "Another replica becomes the next leader, so that the leaders of a lost broker go to several.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The largest load of a resource as a part of a broker's share."""

    name: str
    before: str
    after: str
    allowed: str
    is_met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The load of a broker in a resource. Widths are in percent of the column."""

    text: str
    sort: float
    before: float
    after: float
    share: float | None
    """None: the broker takes no part in the balance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """The row of a broker, with a bar for each resource of which a load is known."""

    id: int
    rack: str | None
    state: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """The row of a batch."""

    number: int
    partitions: int
    bytes: str
    busiest: str
    duration: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of which only the first are shown."""

    shown: tuple[str, ...]
    total: int


def format_page(
    plan: Plan, troubles: Sequence[str], supposed: Sequence[str], bytes_per_second: float | None = None
) -> str:
    """Return the whole page. `bytes_per_second` is what a broker may copy; None: no time is estimated."""
    brokers = plan.snapshot.brokers
    copied, unknown = (int(each.sum()) for each in (plan.bytes_copied != 0, np.isnan(plan.bytes_copied)))
    counts = {reason: int(((plan.reasons & reason.bit) > 0).sum()) for reason in Reason}
    busiest = compute_busiest(plan)
    moves = tuple(islice(plan.iterate_moves(), MOST_MOVES))
    shown = list_shown(plan)
    return (
        _environment()
        .get_template("plan.html")
        .render(
            plan=plan,
            title=f"{_TITLES[plan.goals.mode]} of {plan.snapshot.cluster_id or 'a cluster'}",
            taken=format_taken(plan),
            plan_hash=plan.compute_hash()[:12],
            copied=copied,
            unknown_sizes=unknown,
            total=_format_total(plan.total_bytes, copied, unknown),
            busiest=format_bytes(float(busiest.sum())),
            rate=None if bytes_per_second is None else f"{format_bytes(bytes_per_second)}/s",
            duration=None if bytes_per_second is None else format_duration(float(busiest.sum()) / bytes_per_second),
            balances=[*_list_balances(plan)],
            heads=[_RESOURCES[plan.resources[at]] for at in shown],
            rows=_list_brokers(plan, shown),
            brokers_total=len(brokers),
            changed=int((~_is_same(plan)).any(axis=1).sum()),
            reasons=[(reason, counts[reason], _REASONS[reason]) for reason in Reason if counts[reason]],
            batches=[*_list_batches(plan, busiest, bytes_per_second)],
            moves=moves,
            format_move_bytes=_format_move_bytes,
            mark=_mark,
            supposed=_shorten(supposed),
            unknown=_shorten((*plan.unknown, *troubles)),
            left_out=_shorten(plan.left_out),
            shortages=_shorten(describe_shortages(plan)),
        )
    )


@cache
def _environment() -> Environment:
    made = make_environment("kontroller.planning")
    made.filters["number"] = lambda value: f"{value:,}"
    return made


def _shorten(lines: Sequence[str]) -> Lines:
    return Lines(shown=tuple(lines[:MOST_LINES]), total=len(lines))


def _format_total(known: float, copied: int, unknown: int) -> str:
    return "unknown" if unknown and unknown == copied else f"{'at least ' if unknown else ''}{format_bytes(known)}"


def _format_move_bytes(move: Move) -> str:
    return "unknown" if move.bytes_copied is None else format_bytes(move.bytes_copied) if move.bytes_copied else "-"


def _mark(move: Move) -> list[tuple[int, bool]]:
    """Return the replicas after the move; True for those that are new."""
    return [(broker, broker not in move.before) for broker in move.after]


def _list_balances(plan: Plan) -> Iterator[Balance]:
    """Yield the largest load of each resource that is balanced, as a multiple of the broker's share."""
    unmeasured = find_unmeasured(plan.snapshot)
    for at, name in enumerate(plan.resources):
        shares = plan.shares[:, at]
        used = np.isfinite(shares) & (shares > 0)
        if unmeasured[at] or not used.any():
            yield Balance(name=_RESOURCES[name], before="unknown", after="unknown", allowed="-", is_met=True)
            continue
        before, after = (
            float((loads[used, at] / shares[used]).max()) for loads in (plan.loads_before, plan.loads_after)
        )
        allowed = float(plan.bounds[used, at].max())
        yield Balance(
            name=_RESOURCES[name],
            before=f"{before:.3f}",
            after=f"{after:.3f}",
            allowed=f"{allowed:.3f}",
            is_met=bool((plan.loads_after[used, at] / shares[used] <= plan.bounds[used, at] + 1e-3).all()),
        )


def _is_same(plan: Plan) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    return np.isclose(plan.loads_before, plan.loads_after, rtol=1e-9, equal_nan=True)


def _list_brokers(plan: Plan, shown: Sequence[int]) -> list[BrokerRow]:
    """Return the brokers whose loads change most, in the order of their ids."""
    brokers = plan.snapshot.brokers
    largest = np.nan_to_num(np.maximum(plan.loads_before, plan.loads_after)).max(axis=0, initial=0)
    scale = np.maximum(np.maximum(largest, np.nan_to_num(plan.shares).max(axis=0, initial=0)), 1e-9)
    change = np.nan_to_num(np.abs(plan.loads_after - plan.loads_before) / scale).max(axis=1, initial=0)
    chosen = np.argsort(-change, kind="stable")[:MOST_BROKERS]
    rows = []
    for row in sorted(chosen.tolist(), key=lambda at: int(brokers.ids[at])):
        bars = []
        for at in shown:
            before, after = float(plan.loads_before[row, at]), float(plan.loads_after[row, at])
            share, name = float(plan.shares[row, at]), plan.resources[at]
            texts = [format_load(name, each) for each in (before, after)]
            bars.append(
                Bar(
                    text=texts[1] if texts[0] == texts[1] else f"{texts[0]} → {texts[1]}",
                    sort=after,
                    before=round(_WIDTH * before / float(scale[at]), 2),
                    after=round(_WIDTH * after / float(scale[at]), 2),
                    share=None if np.isnan(share) else round(_WIDTH * share / float(scale[at]), 2),
                )
            )
        rows.append(
            BrokerRow(
                id=int(brokers.ids[row]), rack=brokers.racks[row], state=name_state(brokers, row), bars=tuple(bars)
            )
        )
    return rows


def _list_batches(
    plan: Plan, busiest: np.ndarray[tuple[int], np.dtype[np.float64]], bytes_per_second: float | None
) -> Iterator[BatchRow]:
    for number in range(min(plan.batches, MOST_BATCHES)):
        these = plan.batch == number
        sizes = plan.bytes_copied[these]
        copied, unknown = int((sizes != 0).sum()), int(np.isnan(sizes).sum())
        yield BatchRow(
            number=number,
            partitions=int(these.sum()),
            bytes=_format_total(float(np.nansum(sizes)), copied, unknown),
            busiest=format_bytes(float(busiest[number])),
            duration="" if bytes_per_second is None else format_duration(float(busiest[number]) / bytes_per_second),
        )
