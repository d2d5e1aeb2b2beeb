"""Reasons why a plan puts no replica of a partition on a broker: constraints that forbid it, and goals that suffer.

The replica on the broker would take the place of another one. The answer is about the place with the fewest reasons."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controller_core.model.wording import name_all
from controller_planner.goals import Mode
from controller_planner.plan import Plan
from controller_planner.resources import OF_A_REPLICA, measure_replicas
from controller_planner.scope import Scope, find_scope
from kontroller.planning.tables import format_load

_QUESTION: Final = re.compile(
    r"(?P<topic>\S+)-(?P<partition>[0-9]{1,10}) on (?:broker )?(?P<broker>[0-9]{1,10})", re.ASCII
)
_ONLY_WHAT_MUST: Final = frozenset({Mode.DRAIN, Mode.RELIEVE, Mode.REPLICATION_FACTOR})
"""The modes that move no other replicas than those that must leave or are missing."""
_EVENS: Final = frozenset({Mode.REBALANCE, Mode.EXPAND})
_ROUNDING: Final = 1e-6


class UnclearPlaceError(ValueError):
    """A question that is not understood, or not about this cluster. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """The answer."""

    partition: str
    broker: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    replaced: int | None = None
    """The broker whose place the replica would take. None: no place was looked at."""
    constraints: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()

    def format_lines(self) -> Iterator[str]:
        """Yield the answer in lines."""
        before, after = (", ".join(map(str, each)) for each in (self.before, self.after))
        yield f"{self.partition} is on {name_all('broker', self.before)}" + (
            ", and the plan leaves it there" if before == after else f", and the plan puts it on {after}"
        )
        if self.broker in self.after:
            yield f"broker {self.broker} has a replica after the plan"
            return
        place = "" if self.replaced is None else f" in the place of {self.replaced}"
        if not (self.constraints or self.goals):
            yield f"nothing speaks against {self.broker}{place}: the plan could as well have chosen it"
            return
        yield f"against {self.broker}{place}:"
        yield from (f"  constraint: {each}" for each in self.constraints)
        yield from (f"  goal: {each}" for each in self.goals)


@dataclass(slots=True, kw_only=True)
class _Place:
    """A place that the replica could take, and the reasons against it."""

    replaced: int
    constraints: list[str] = field(default_factory=list)
    goals: list[str] = field(default_factory=list)


def explain_why_not(question: str, plan: Plan) -> WhyNot:
    """Answer a question such as `orders-3 on 7`. Raises `UnclearPlaceError`."""
    at, broker = _find_subject(question, plan)
    ids, partitions = plan.snapshot.brokers.ids, plan.snapshot.partitions
    before = _list_used(partitions.replicas[at])
    changes = np.flatnonzero(plan.partition == at)
    after = _list_used(plan.after[changes[0]]) if len(changes) else before
    constraints, goals = list[str](), list[str]()
    place = None
    if broker not in after:
        scope = find_scope(plan.snapshot, plan.goals)
        constraints += _list_of_broker(plan, scope, broker)
        constraints += _list_of_partition(plan, scope, at)
        places = [_judge(plan, at, after, each, broker) for each in _find_places(plan, scope, before, after)]
        if places:
            place = min(places, key=lambda each: (len(each.constraints), len(each.goals)))
            constraints += place.constraints
            goals += place.goals
            goals += _list_unneeded(plan, before, place.replaced, broker)
            constraints += _list_limits(plan, at, is_changed=bool(len(changes)), copies=place.replaced in before)
        elif not constraints:
            constraints.append(
                f"the mode {plan.goals.mode} moves only replicas that must leave or are missing, and here is none"
            )
    return WhyNot(
        partition=partitions.name(at),
        broker=int(ids[broker]),
        before=tuple(ids[before].tolist()),
        after=tuple(ids[after].tolist()),
        replaced=None if place is None else int(ids[place.replaced]),
        constraints=tuple(constraints),
        goals=tuple(goals),
    )


def _find_subject(question: str, plan: Plan) -> tuple[int, int]:
    """Return the indexes of the partition and of the broker."""
    match = _QUESTION.fullmatch(" ".join(question.split()))
    if match is None:
        raise UnclearPlaceError(
            f'{question!r} is not understood: ask "TOPIC-PARTITION on BROKER", such as "orders-3 on 7"'
        )
    partitions, topic, number, broker = plan.snapshot.partitions, match["topic"], int(match[2]), int(match[3])
    if topic not in partitions.topics:
        raise UnclearPlaceError(f"the snapshot has no topic {topic}")
    found = np.flatnonzero((partitions.topic == partitions.topics.index(topic)) & (partitions.number == number))
    if not len(found):
        raise UnclearPlaceError(f"topic {topic} has no partition {number}")
    place = np.flatnonzero(plan.snapshot.brokers.ids == broker)
    if not len(place):
        raise UnclearPlaceError(f"the snapshot has no broker {broker}")
    return int(found[0]), int(place[0])


def _list_used(row: Any) -> list[int]:
    return [each for each in row.tolist() if each >= 0]


def _list_of_broker(plan: Plan, scope: Scope, broker: int) -> Iterator[str]:
    """Yield the reasons why the broker gets no replica at all."""
    brokers, goals = plan.snapshot.brokers, plan.goals
    number = int(brokers.ids[broker])
    if not brokers.is_live[broker]:
        yield f"broker {number} is down"
    elif not brokers.takes_replicas[broker]:
        yield f"broker {number} takes no new replicas: it is cordoned, shuts down, or was named as closed"
    if scope.drained[broker]:
        yield f"broker {number} is drained"
    if scope.relieved[broker]:
        yield f"broker {number} is relieved, and gets no replicas"
    if goals.below_percent is not None and np.isnan(brokers.capacity_disk_bytes[broker]):
        yield f"the disk capacity of broker {number} is unknown, and {goals.below_percent} percent of it as well"
    if number in goals.excluded_brokers:
        yield f"broker {number} is excluded"
    if goals.racks is not None and (rack := brokers.racks[broker]) not in goals.racks:
        yield f"broker {number} is in {f'rack {rack}' if rack else 'no rack'}, which is not in the scope"
    if goals.mode is Mode.EXPAND and scope.takes[broker] and broker not in scope.receivers:
        filled = sorted(brokers.ids[scope.receivers].tolist())
        yield f"the mode {goals.mode} fills only {name_all('broker', filled)}"
    if goals.mode is Mode.LEADERS_ONLY:
        yield f"the mode {goals.mode} copies nothing"


def _list_of_partition(plan: Plan, scope: Scope, at: int) -> Iterator[str]:
    """Yield the reasons why the partition does not change."""
    if scope.partitions[at]:
        return
    goals, partitions = plan.goals, plan.snapshot.partitions
    topic = partitions.topics[partitions.topic[at]]
    if topic in goals.excluded_topics:
        yield f"topic {topic} is excluded"
    elif goals.topics is not None and topic not in goals.topics:
        yield f"topic {topic} is none of those that may change"
    else:
        yield "no replica in sync is on a live broker, so nothing can be copied from it"


def _find_places(plan: Plan, scope: Scope, before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the brokers whose place the replica could take."""
    if plan.goals.mode in _ONLY_WHAT_MUST:
        return [each for each in after if each not in before]
    return [each for each in after if scope.takes[each]]


def _judge(plan: Plan, at: int, after: Sequence[int], replaced: int, broker: int) -> _Place:
    """Return the reasons against the broker in the place of another."""
    place = _Place(replaced=replaced)
    ids, racks = plan.snapshot.brokers.ids, plan.snapshot.brokers.racks
    others = [each for each in after if each != replaced]
    crowded = [each for each in others if racks[each] is not None and racks[each] == racks[broker]]
    if len(crowded) > sum(racks[each] is not None and racks[each] == racks[replaced] for each in others):
        place.constraints.append(
            f"its rack {racks[broker]} already has a replica, on {name_all('broker', ids[crowded])}"
        )
    cost = measure_replicas(plan.snapshot)[at]
    brokers = plan.snapshot.brokers
    capacities = (None, brokers.capacity_disk_bytes, brokers.capacity_in_bytes_per_second)
    for column in range(OF_A_REPLICA):
        name, capacity = plan.resources[column], capacities[column]
        load = float(plan.loads_after[broker, column] + cost[column])
        if capacity is not None and load > capacity[broker]:
            full = f"{format_load(name, load)} of {format_load(name, float(capacity[broker]))}"
            place.constraints.append(f"{name}: broker {ids[broker]} would have {full}")
            continue
        share, most = (float(each[broker, column]) for each in (plan.shares, plan.bounds))
        of_replaced = plan.loads_after[replaced, column] / plan.shares[replaced, column]
        if load / share > max(most + _ROUNDING, of_replaced):
            place.goals.append(
                f"{name}: broker {ids[broker]} would have {format_load(name, load)}, {load / share:.2f} times its share;"
                f" the plan allows {most:.2f}"
            )
    place.goals += _list_of_topic(plan, at, replaced, broker)
    place.goals += _list_failed_together(plan, others, replaced, broker)
    return place


def _list_failed_together(plan: Plan, others: Sequence[int], replaced: int, broker: int) -> Iterator[str]:
    """Yield the reason if the broker failed together with those of the other replicas more often than the other one."""
    ids = plan.snapshot.brokers.ids
    rest = set(ids[others].tolist())
    here, there = (
        sum(
            times
            for first, second, times in plan.goals.failed_together
            if at in (first, second) and {first, second} - {at} <= rest
        )
        for at in (int(ids[broker]), int(ids[replaced]))
    )
    if here > there:
        yield (
            f"failed together: broker {ids[broker]} {here:g} times with brokers of the other replicas, and {ids[replaced]}"
            f" {there:g} times"
        )


def _list_of_topic(plan: Plan, at: int, replaced: int, broker: int) -> Iterator[str]:
    """Yield the reason if the broker has more replicas of the topic than the other one."""
    partitions, ids = plan.snapshot.partitions, plan.snapshot.brokers.ids
    of_topic = np.flatnonzero(partitions.topic == partitions.topic[at])
    is_changed = np.isin(plan.partition, of_topic)
    rows = [partitions.replicas[np.setdiff1d(of_topic, plan.partition[is_changed])], plan.after[is_changed]]
    counts = [sum(int((row == each).sum()) for row in rows) for each in (broker, replaced)]
    if counts[0] >= counts[1]:
        topic = partitions.topics[partitions.topic[at]]
        yield f"spread of {topic}: {counts[0]} replicas are on broker {ids[broker]}, and {counts[1]} on {ids[replaced]}"


def _list_unneeded(plan: Plan, before: Sequence[int], replaced: int, broker: int) -> Iterator[str]:
    """Yield the reason why the replaced broker keeps its replica, or was chosen."""
    ids = plan.snapshot.brokers.ids
    # A broker that takes no replicas has no share, and a resource that nobody measured has none, either.
    relative = np.nan_to_num(plan.loads_after / plan.shares)[:, :OF_A_REPLICA]
    column = int((relative[broker] - relative[replaced]).argmax())
    if plan.goals.mode in _EVENS and replaced in before:
        if (relative[replaced] <= plan.bounds[replaced, :OF_A_REPLICA] + _ROUNDING).all():
            yield f"fewest bytes: broker {ids[replaced]} is within its bounds, so no replica needs to leave it"
    elif replaced not in before and relative[broker, column] > relative[replaced, column]:
        yield (
            f"{plan.resources[column]}: after the plan broker {ids[broker]} has {relative[broker, column]:.2f} times its"
            f" share, and {ids[replaced]} has {relative[replaced, column]:.2f}"
        )


def _list_limits(plan: Plan, at: int, *, is_changed: bool, copies: bool) -> Iterator[str]:
    """Yield the limits that one more copy would exceed."""
    limits, size = plan.goals.limits, float(measure_replicas(plan.snapshot)[at, 1])
    if copies and limits.max_bytes is not None and plan.total_bytes + size > limits.max_bytes:
        sums = (format_load("disk", each) for each in (plan.total_bytes + size, limits.max_bytes))
        yield "the plan would copy {}, and max_bytes is {}".format(*sums)
    if not is_changed and limits.max_moves is not None and len(plan) >= limits.max_moves:
        yield f"the plan already changes {len(plan)} partitions, and max_moves is {limits.max_moves}"
