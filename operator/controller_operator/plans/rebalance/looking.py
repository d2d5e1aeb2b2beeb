"""A question to the planner, and its answer.

The planner takes seconds, and the looks at the cluster a minute. So a decision only asks. The plan is made in the
background (`reconciling/measuring/plan_maker.py`), and the next decision finds the answer. Nothing of it is on record
before that decision is written, so a restarted operator asks again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.rebalance.speed import find_rate
from controller_operator.resources.conditions import Reason
from controller_operator.resources.rebalancing.rebalance_plan import (
    MAX_MOVES,
    JointFailure,
    PlanMode,
    PlannedMove,
    RebalancePlan,
    RebalancePlanSpec,
    ResourceBalance,
)
from controller_planner.goals import Goals, InvalidGoals, Limits, Mode

MUST_MODES: Final = (Mode.DRAIN, Mode.RELIEVE, Mode.REPLICATION_FACTOR)
"""Modes that have not reached their end if a plan leaves something out."""
_WHOLE_MODES: Final = (Mode.DRAIN, Mode.REPLICATION_FACTOR)
"""Modes that are not done without each of their topics, so they leave out none that a KafkaTopic holds in place."""
_BATCHES_IN_TIME: Final = 4
"""Batches at least for which spec.limits.maxMinutes has time."""
FindPinned = Callable[[], Sequence[str]]
"""Returns the topics whose KafkaTopics name all replicas and move them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A wish for a plan, from a new look at the cluster."""

    number: int
    """The number of plans before it."""
    generation: int
    cluster_id: str | None
    goals: Goals
    between_looks_s: float
    closed: frozenset[BrokerId]
    """Brokers that take no replicas."""
    brokers: frozenset[BrokerId]
    """The live brokers when the wish arose."""
    run: datetime | None = None
    """The begin of the run of a plan that never ends."""
    gone: frozenset[BrokerId] = frozenset()
    """The brokers to drain because they are gone. There is no plan if the other brokers see one of them."""
    notes: tuple[str, ...] = ()
    """Sentences about what the plan leaves out from the start."""
    failed_together: tuple[JointFailure, ...] = ()

    def is_for_same_plan(self, other: "Look") -> bool:
        """Return True if one plan serves both."""
        mine, others = ((each.number, each.run, each.generation, each.cluster_id) for each in (self, other))
        return mine == others


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, in the words of a status."""

    look_time: datetime
    snapshot_hash: str
    moves: tuple[PlannedMove, ...]
    bytes: int
    resources: tuple[ResourceBalance, ...]
    unknown: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of the planner: a plan, or the reason why there is none."""

    look: Look
    planned: Planned | None = None
    trouble: Verdict | None = None

    def answers(self, look: Look) -> bool:
        """Return True if this is the answer to a wish. A failure is one only as long as nothing relevant has changed."""
        return look.is_for_same_plan(self.look) if self.planned is not None else look == self.look


def find_task(resource: RebalancePlan) -> tuple[Mode, tuple[BrokerId, ...]]:
    """Return the planner's mode and brokers, which in the mode heal are those of the present run."""
    healing = resource.status.healing
    if resource.spec.mode is PlanMode.HEAL and healing is not None:
        return Mode(healing.mode), healing.brokers
    return Mode(resource.spec.mode), tuple(resource.spec.brokers or ())


def make_look(resource: RebalancePlan, view: Snapshot, find_pinned: FindPinned) -> Look | Verdict:
    """Return the wish for the next plan, or the reason why there can be none."""
    spec, counts = resource.spec, resource.status.counts
    mode, brokers = find_task(resource)
    is_healing = spec.mode is PlanMode.HEAL
    scope, limits = spec.scope, spec.limits
    names = sorted(view.topics.keys() - view.deleting)
    topics = None
    if scope is not None and scope.topics is not None:
        topics = _select(names, scope.topics)
        if not topics:
            message = f"no topic of the cluster matches spec.scope.topics: {list_some(scope.topics)}"
            return Verdict.make_stalled(Reason.UNKNOWN_TOPIC, message)
    excluded = _select(names, scope.exclude_topics or ()) if scope is not None else ()
    pinned = (
        ()
        if mode in _WHOLE_MODES and not is_healing
        else tuple(sorted(set(find_pinned()) & set(topics or names) - set(excluded)))
    )
    note = f"topics {list_some(pinned)} stay, because their KafkaTopics name the replicas (driftPolicy Enforce)"
    done, copied = (counts.done, counts.bytes_copied) if counts is not None else (0, 0)
    moves_left = None if limits is None or limits.max_moves is None else limits.max_moves - done
    bytes_left = None if limits is None or limits.max_bytes is None else limits.max_bytes - copied
    try:
        goals = Goals(
            mode=mode,
            brokers=brokers,
            topics=topics,
            excluded_topics=tuple(sorted({*excluded, *pinned})),
            excluded_brokers=tuple(scope.exclude_brokers or ()) if scope is not None else (),
            racks=scope.racks if scope is not None else None,
            replication_factor=spec.replication_factor,
            below_percent=spec.below_percent,
            limits=Limits(
                max_moves=MAX_MOVES if moves_left is None else min(MAX_MOVES, moves_left),
                max_bytes=bytes_left,
                max_batch_bytes_per_broker=_find_largest_batch(
                    spec, find_rate(spec.throttle, resource.status.throttle_percent)
                ),
            ),
        )
    except InvalidGoals as error:
        return Verdict.make_stalled(Reason.PLAN_IMPOSSIBLE, str(error))
    return Look(
        number=resource.status.plans,
        run=resource.status.last_run_time,
        generation=resource.metadata.generation,
        cluster_id=view.cluster_id,
        goals=goals,
        between_looks_s=spec.between_looks_seconds,
        closed=view.closed,
        brokers=frozenset(view.brokers),
        gone=frozenset(brokers) if is_healing and mode is Mode.DRAIN else frozenset(),
        notes=(note,) if pinned else (),
        failed_together=spec.failed_together or (),
    )


def _find_largest_batch(spec: RebalancePlanSpec, bytes_per_second: int | None) -> float | None:
    """Return the bytes that a broker may receive or send in one batch, so that the last one ends soon after maxMinutes."""
    limits = spec.limits
    if limits is None:
        return None
    most = [] if limits.max_batch_bytes_per_broker is None else [float(limits.max_batch_bytes_per_broker)]
    if limits.max_minutes is not None and bytes_per_second is not None:
        most.append(bytes_per_second * limits.max_minutes * 60 / _BATCHES_IN_TIME)
    return min(most, default=None)


def _select(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the names that match a pattern."""
    return tuple(name for name in names if any(fnmatchcase(name, each) for each in patterns))
