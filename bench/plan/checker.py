"""A checker of plans that shares no code with the planner: plain Python over dictionaries, slow and simple.

It plays a plan batch by batch and returns each violation of a hard constraint as a sentence."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from controller_planner.goals import Mode
from controller_planner.loads import LoadSnapshot
from controller_planner.plan import Plan

Assignment = dict[tuple[str, int], tuple[int, ...]]


def find_violations(plan: Plan) -> list[str]:
    """Return all violations of a plan, in its result and on the way there."""
    batches = plan.batch.tolist()
    order = [] if batches == sorted(batches) else ["the batches are out of order"]
    return [*order, *_check_moves(plan), *_check_batches(plan), *_check_result(plan), *_check_disks(plan)]


def read_assignment(snapshot: LoadSnapshot) -> Assignment:
    """Return the replicas of each partition by names and ids."""
    partitions, ids = snapshot.partitions, snapshot.brokers.ids.tolist()
    return {
        (partitions.topics[topic], number): tuple(ids[at] for at in row if at >= 0)
        for topic, number, row in zip(
            partitions.topic.tolist(), partitions.number.tolist(), partitions.replicas.tolist(), strict=True
        )
    }


def apply_moves(plan: Plan) -> Assignment:
    """Return the assignment after the plan."""
    assignment = read_assignment(plan.snapshot)
    assignment.update({(move.topic, move.partition): move.after for move in plan.iterate_moves()})
    return assignment


def _check_moves(plan: Plan) -> Iterator[str]:
    snapshot, goals = plan.snapshot, plan.goals
    before = read_assignment(snapshot)
    takes = _find_takers(plan)
    seen = set()
    for move in plan.iterate_moves():
        key = (move.topic, move.partition)
        if key in seen:
            yield f"{key} is changed twice"
        seen.add(key)
        if move.before != before[key]:
            yield f"{key}: it was {before[key]}, not {move.before}"
        if move.after == move.before:
            yield f"{key}: nothing changes"
        if not move.reasons:
            yield f"{key}: no reason is given"
        if len(set(move.after)) != len(move.after):
            yield f"{key}: a broker twice in {move.after}"
        wanted = goals.replication_factor if goals.replication_factor is not None else len(move.before)
        if len(move.after) != wanted:
            yield f"{key}: {len(move.after)} replicas, not {wanted}"
        added = set(move.after) - set(move.before)
        if added - takes:
            yield f"{key}: added on {added - takes}, which take no replicas"
        if (goals.topics is not None and move.topic not in goals.topics) or move.topic in goals.excluded_topics:
            yield f"{key}: out of scope"
        if _find_excluded(plan) & (set(move.before) - set(move.after)):
            yield f"{key}: taken off an excluded broker"
        if goals.mode is Mode.LEADERS_ONLY and (added or set(move.before) - set(move.after)):
            yield f"{key}: a replica moves"


def _find_excluded(plan: Plan) -> set[int]:
    """Return the brokers that keep their replicas. A broker that is drained or relieved gives its own in any rack, and a
    broker that is down may be in any rack."""
    brokers, goals = plan.snapshot.brokers, plan.goals
    named = set(goals.brokers) if goals.mode in (Mode.DRAIN, Mode.RELIEVE) else set()
    outside = {
        broker
        for broker, rack, lives in zip(brokers.ids.tolist(), brokers.racks, brokers.is_live.tolist(), strict=True)
        if goals.racks is not None and rack not in goals.racks and (lives or rack is not None)
    }
    return (outside | set(goals.excluded_brokers)) - named


def _find_takers(plan: Plan) -> set[int]:
    brokers, goals = plan.snapshot.brokers, plan.goals
    named = set(goals.brokers) if goals.mode in (Mode.DRAIN, Mode.RELIEVE) else set()
    return {
        broker
        for broker, takes, lives in zip(
            brokers.ids.tolist(), brokers.takes_replicas.tolist(), brokers.is_live.tolist(), strict=True
        )
        if takes and lives and broker not in named and broker not in _find_excluded(plan)
    }


def read_sizes(snapshot: LoadSnapshot, *, fill: bool = False) -> dict[tuple[str, int], float]:
    """Return the size of each partition; if it is unknown, 0 or the mean of the others."""
    partitions = snapshot.partitions
    known = [size for size in partitions.size_bytes.tolist() if not math.isnan(size)]
    filler = sum(known) / len(known) if fill and known else 0.0
    return {
        (partitions.topics[topic], number): filler if math.isnan(size) else size
        for topic, number, size in zip(
            partitions.topic.tolist(), partitions.number.tolist(), partitions.size_bytes.tolist(), strict=True
        )
    }


def _check_batches(plan: Plan) -> Iterator[str]:
    """Each broker must have disk for what a batch copies to it while it still has what it gives away."""
    brokers = plan.snapshot.brokers
    sizes = read_sizes(plan.snapshot)
    used = sum_bytes(read_assignment(plan.snapshot), sizes)
    capacity = dict(zip(brokers.ids.tolist(), brokers.capacity_disk_bytes.tolist(), strict=True))
    moves = list(plan.iterate_moves())
    for batch in range(plan.batches):
        these = [move for move in moves if move.batch == batch]
        if not these:
            yield f"batch {batch} is empty"
        received: defaultdict[int, float] = defaultdict(float)
        for move in these:
            for broker in set(move.after) - set(move.before):
                received[broker] += sizes[move.topic, move.partition]
        for broker, amount in received.items():
            if amount > 0 and used[broker] + amount > capacity[broker] * (1 + 1e-9):
                yield f"batch {batch}: broker {broker} needs {used[broker] + amount:g} of {capacity[broker]:g} bytes"
        for broker, amount in received.items():
            used[broker] += amount
        for move in these:
            for broker in set(move.before) - set(move.after):
                used[broker] -= sizes[move.topic, move.partition]


def _check_result(plan: Plan) -> Iterator[str]:
    brokers, goals = plan.snapshot.brokers, plan.goals
    rack_of = {
        broker: rack if rack is not None else f"alone {broker}"
        for broker, rack in zip(brokers.ids.tolist(), brokers.racks, strict=True)
    }
    takes = _find_takers(plan)
    before = read_assignment(plan.snapshot)
    stuck = bool(plan.left_out)
    for key, replicas in apply_moves(plan).items():
        old, new = _count_pairs(before[key], rack_of), _count_pairs(replicas, rack_of)
        if goals.mode in (Mode.REBALANCE, Mode.RELIEVE, Mode.EXPAND, Mode.SPREAD) and new > old:
            yield f"{key}: {replicas} is more crowded than {before[key]}"
        scoped = (goals.topics is None or key[0] in goals.topics) and key[0] not in goals.excluded_topics
        if not scoped or stuck:
            continue
        if goals.mode is Mode.DRAIN and set(replicas) & set(goals.brokers):
            yield f"{key}: {replicas} is still on a drained broker"
        if goals.mode is Mode.REPLICATION_FACTOR and len(replicas) != goals.replication_factor:
            yield f"{key}: {len(replicas)} replicas"
        added = set(replicas) - set(before[key])
        if (added or goals.mode in (Mode.REBALANCE, Mode.SPREAD)) and goals.mode not in (
            Mode.EXPAND,
            Mode.RELIEVE,
            Mode.LEADERS_ONLY,
        ):
            for broker in set(replicas) & takes if goals.mode in (Mode.REBALANCE, Mode.SPREAD) else added:
                others = set(replicas) - {broker}
                crowd = Counter(rack_of[other] for other in others)
                if better := [at for at in takes - others if crowd[rack_of[at]] < crowd[rack_of[broker]]]:
                    yield f"{key}: {replicas}, but {better[0]} is in a less crowded rack than {broker}"


def _check_disks(plan: Plan) -> Iterator[str]:
    """A broker that is relieved, and one that gets its replicas, end within the bound; no replica leaves in vain."""
    goals, limits = plan.goals, find_disk_limits(plan)
    if goals.mode is not Mode.RELIEVE:
        return
    sizes = read_sizes(plan.snapshot, fill=True)
    used = sum_bytes(apply_moves(plan), sizes)
    moves = list(plan.iterate_moves())
    if others := {broker for move in moves for broker in set(move.before) - set(move.after)} - set(goals.brokers):
        yield f"brokers {others} lose replicas, and are not relieved"
    for broker in {broker for move in moves for broker in set(move.after) - set(move.before)}:
        if not used[broker] <= limits[broker] * (1 + 1e-9):
            yield f"broker {broker} got replicas, and has {used[broker]:g} of {limits[broker]:g} bytes"
    for broker in goals.brokers:
        if not plan.left_out and not used[broker] <= limits[broker] * (1 + 2e-9):
            yield f"broker {broker} keeps {used[broker]:g} of {limits[broker]:g} bytes"
        for move in moves if len(goals.brokers) == 1 else ():
            key = (move.topic, move.partition)
            if broker not in move.after and used[broker] + sizes[key] < limits[broker] * (1 - 1e-9):
                yield f"{key}: leaves broker {broker} in vain"


def find_disk_limits(plan: Plan) -> dict[int, float]:
    """Return the bytes that the disks of each broker may have in use in the mode relieve."""
    goals, brokers = plan.goals, plan.snapshot.brokers
    capacity = dict(zip(brokers.ids.tolist(), brokers.capacity_disk_bytes.tolist(), strict=True))
    if goals.below_percent is not None:
        return {broker: known * goals.below_percent / 100 for broker, known in capacity.items()}
    used = sum_bytes(read_assignment(plan.snapshot), read_sizes(plan.snapshot, fill=True))
    members = _find_takers(plan) | set(goals.brokers)
    is_known = not any(math.isnan(capacity[broker]) for broker in members)
    weights = {broker: capacity[broker] if is_known else 1.0 for broker in members}
    share = sum(used[broker] for broker in members) / max(sum(weights.values()), 1e-300)
    limits = {broker: goals.band * share * weight for broker, weight in weights.items()}
    return {broker: min(limit, capacity[broker]) if capacity[broker] > 0 else limit for broker, limit in limits.items()}


def sum_bytes(assignment: Assignment, sizes: dict[tuple[str, int], float]) -> defaultdict[int, float]:
    """Return the bytes on the disks of each broker."""
    used: defaultdict[int, float] = defaultdict(float)
    for key, replicas in assignment.items():
        for broker in replicas:
            used[broker] += sizes[key]
    return used


def _count_pairs(replicas: tuple[int, ...], rack_of: dict[int, str]) -> int:
    """Return how many pairs of replicas share a rack."""
    return sum(number * (number - 1) // 2 for number in Counter(rack_of[broker] for broker in replicas).values())
