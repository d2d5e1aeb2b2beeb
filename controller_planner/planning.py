"""Making a plan.

The steps, of which a mode uses some:

1. *Scope.* Which partitions may change, which brokers may receive, which replicas must leave.
2. *Must.* Replicas on drained brokers, replicas that crowd a rack, and missing replicas are placed (`placing`). A full
   disk gives away the fewest bytes (`relieving`).
3. *Balance.* Brokers above the band give replicas away (`evicting`), which are placed elsewhere. This is repeated, because
   what is placed makes others full. Then replicas go home whose home has room again (`returning`): that saves bytes.
   If there is time, this is done in three ways, and the best counts. Replicas on brokers that failed together part first.
   Small clusters are searched replica by replica (`searching`).
4. *Lead.* Leaders are evened by the order of replicas (`leading`), then the second replicas. The mode spread evens the
   leaders of each topic instead.
5. Steps 3 and 4 are repeated until they improve nothing. So a plan of a plan's own result is empty.
6. *Batches.* What fits on the disks and into the bandwidth at once (`batches`).

Nothing depends on anything but the snapshot and the goals: random choices come from the goals' seed."""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from controller_planner.arranging.bounds import compute_bounds, raise_for_expansion
from controller_planner.arranging.evicting import evict, evict_exactly
from controller_planner.arranging.layout import LARGEST_TABLE_OF_A_SPREAD, LARGEST_TOPIC_TABLE, Layout, Slots
from controller_planner.arranging.leading import (
    compute_next_leader_excess,
    exchange_leaders,
    rank_in_group,
    rotate,
    spread_next_leaders,
    spread_topic_leaders,
    turn_next_leaders,
)
from controller_planner.arranging.placing import Placing, find_least_crowd, find_placeable, place
from controller_planner.arranging.relieving import ROUNDING, choose_relief, compute_disk_limits
from controller_planner.arranging.returning import return_home
from controller_planner.arranging.searching import Allowed, is_small, round_up_excess, search_thoroughly
from controller_planner.arranging.swapping import relieve_the_last
from controller_planner.batches import NEVER, fit_in_turn, pack_batches
from controller_planner.goals import Goals, InvalidGoals, Mode, Unsatisfiable
from controller_planner.loads import NO_BROKER, Bools, Floats, Ints, LoadSnapshot
from controller_planner.plan import Plan, Reason
from controller_planner.resources import (
    DISK,
    OF_A_REPLICA,
    RESOURCES,
    compute_loads,
    describe_unknown,
    find_unmeasured,
    measure,
    measure_leaders,
)
from controller_planner.scope import Scope, find_scope

_FIRST_AIMS: Final = (0.96, 0.99, 0.93)
_AIMS: Final = (0.92, 0.9, 0.9, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6)
"""The part of the way from the share to the bound at which a broker stops to give away, turn by turn."""
_MOST_SLOTS_FOR_WAYS: Final = 200_000
"""Slots up to which each first aim is tried: which one is best is a matter of luck if few replicas are large."""
_LEAST_IMPROVEMENT: Final = 0.02
_MOST_REPEATS: Final = 5
_MOST_SPREADS: Final = 30
"""Repeats of the mode spread, which are short. It ends when nothing improves, so a plan of its own result is empty."""
_SEPARATING: Final = (Mode.REBALANCE, Mode.SPREAD)
"""The modes that move replicas off brokers that failed together. Other modes only place those that move anyway."""
_BALANCE_REASONS: Final = (Reason.REPLICAS, Reason.DISK, Reason.IN, Reason.OUT, Reason.LEADERS)
_MUST_BITS: Final = (
    Reason.DRAIN.bit | Reason.RACK.bit | Reason.REPLICATION_FACTOR.bit | Reason.CAPACITY.bit | Reason.RELIEF.bit
)


def make_plan(snapshot: LoadSnapshot, goals: Goals | None = None) -> Plan:
    """Return the plan that fulfils the goals.

    Raises InvalidGoals or Unsatisfiable. A partition that cannot be moved does not hinder the others: the plan says in
    `left_out` which it is and why."""
    goals = goals or Goals()
    work = _Work(snapshot, goals)
    if len(snapshot.partitions):
        work.place_what_must()
        work.improve()
    return work.finish()


@dataclass(slots=True)
class _Work:
    """A plan in the making."""

    snapshot: LoadSnapshot
    goals: Goals
    scope: Scope = field(init=False)
    layout: Layout = field(init=False)
    original: Ints = field(init=False)
    bounds: Floats = field(init=False)
    disk_limits: Floats = field(init=False)
    """For the mode relieve: bytes that the disks of each broker may have in use."""
    rng: np.random.Generator = field(init=False)
    bits: Ints = field(init=False)
    """The reasons why each partition changes."""
    left_out: list[str] = field(init=False)

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.scope = scope = find_scope(snapshot, self.goals)
        replicas = snapshot.partitions.replicas
        width = max(int(scope.factors.max(initial=1)), replicas.shape[1], 1)
        self.original = np.full((len(replicas), width), NO_BROKER, dtype=np.int32)
        self.original[:, : replicas.shape[1]] = replicas
        stays = (self.original >= 0) & ~np.append(scope.takes, np.False_)[self.original]
        stays &= ~(np.append(scope.drained, np.False_)[self.original] & scope.partitions[:, None])
        fixed = np.where(stays, self.original, NO_BROKER).astype(np.int32)
        resources = measure(snapshot, scope.factors, scope.takes, fixed)
        partitions = snapshot.partitions
        racks, topics = snapshot.brokers.racks, len(partitions.topics)
        table = LARGEST_TABLE_OF_A_SPREAD if self.goals.mode is Mode.SPREAD else LARGEST_TOPIC_TABLE
        self.layout = Layout(self.original, resources, racks, scope.takes, partitions.topic, topics, table)
        self.layout.together = _make_together(snapshot, self.goals, scope.takes)
        self.bounds = compute_bounds(self.layout, self.goals.band, scope.factors, fixed)
        if self.goals.mode is Mode.EXPAND:
            raise_for_expansion(self.layout, self.bounds, self.goals.band, scope.receivers)
        if self.goals.mode is Mode.RELIEVE:
            self._limit_disks()
        self.bits = np.zeros(len(partitions), dtype=np.int32)
        self.left_out = list(scope.left_out)
        self._restart_random()
        self._check_sizes()
        self._check_capacity()

    def _restart_random(self) -> None:
        self.rng = np.random.Generator(np.random.PCG64(self.goals.seed))

    def _limit_disks(self) -> None:
        """Give the brokers that are relieved, and the receivers, no more room on their disks than the bound."""
        layout, scope, goals = self.layout, self.scope, self.goals
        self.disk_limits = compute_disk_limits(layout, scope.takes | scope.relieved, goals.below_percent, goals.band)
        capacity = layout.resources.capacity.copy()
        bound = scope.takes | scope.relieved
        capacity[:-1, DISK][bound] = self.disk_limits[bound]
        layout.resources = replace(layout.resources, capacity=capacity)
        per_share = layout.resources.per_share[:-1, DISK]
        bears = per_share > 0
        self.bounds[:-1, DISK][bears] = self.disk_limits[bears] * per_share[bears]

    def _check_sizes(self) -> None:
        """Refuse what depends on bytes if no size is known."""
        limits = self.goals.limits
        if self.goals.mode is Mode.LEADERS_ONLY or not find_unmeasured(self.snapshot)[DISK]:
            return
        if self.goals.mode is Mode.RELIEVE:
            raise InvalidGoals("no disk can be relieved, because no partition's size is known")
        if limits.max_bytes is not None:
            raise InvalidGoals("max_bytes cannot be kept, because no partition's size is known; give max_moves instead")
        if limits.max_batch_bytes_per_broker is not None:
            self.left_out.append("batches are not limited in bytes, because no partition's size is known")

    def _check_capacity(self) -> None:
        """Refuse loads that no arrangement fits into the brokers that take replicas."""
        resources, takes = self.layout.resources, self.scope.takes
        if self.goals.mode in (Mode.LEADERS_ONLY, Mode.RELIEVE) or not len(self.snapshot.partitions):
            return
        for column in (1, 2, 3):
            room = resources.capacity[:-1, column][takes].sum()
            if not np.isfinite(room) or not resources.known[column] or not takes.any():
                continue
            scale = resources.per_share[:-1, column][takes]
            to_share = float((1 / scale).sum())
            if to_share > room:
                unit = "bytes" if column == DISK else "bytes a second"
                raise Unsatisfiable(
                    f"{RESOURCES[column]}: {to_share:.0f} {unit} for brokers of {room:.0f} {unit},"
                    f" {to_share - room:.0f} too many; add brokers or remove data"
                )

    def place_what_must(self) -> None:
        """Place what constraints require: drained, crowded and missing replicas."""
        layout, scope, mode = self.layout, self.scope, self.goals.mode
        if mode is Mode.REPLICATION_FACTOR:
            self._remove_surplus()
        if mode is Mode.RELIEVE:
            self._relieve()
        leaves = np.append(scope.drained, np.False_)[layout.replicas] & scope.partitions[:, None]
        self._must(np.flatnonzero(leaves.ravel()), Reason.DRAIN)
        position = np.arange(layout.width)
        missing = (layout.replicas < 0) & (position < scope.factors[:, None]) & scope.partitions[:, None]
        self._must(np.flatnonzero(missing.ravel()), Reason.REPLICATION_FACTOR)
        if mode in (Mode.REBALANCE, Mode.SPREAD):
            for _ in range(layout.width):
                crowded = self._find_crowded()
                if not len(crowded) or not self._must(crowded, Reason.RACK):
                    break

    def _relieve(self) -> None:
        """Take replicas off the full disks. A replica that fits nowhere stays, and others are chosen for it."""
        layout, scope, width = self.layout, self.scope, self.layout.width
        rules = Placing(receivers=scope.receivers, must_leave=False)
        left = np.flatnonzero(np.append(scope.relieved, np.False_)[layout.replicas] & scope.partitions[:, None])
        while len(left := left[find_placeable(layout, left, rules)]):
            pool = choose_relief(layout, left, self.disk_limits)
            if not len(pool):
                break
            self.bits[pool // width] |= Reason.RELIEF.bit
            place(layout, pool, rules, self.rng)
            left = np.setdiff1d(left, pool)
        # A larger replica may have replaced one that fits nowhere, so that others need not leave.
        return_home(layout, self.original, np.full_like(self.bounds, np.inf), np.append(scope.relieved, np.False_))
        layout.recompute()
        excess = layout.loads[:-1, DISK] - self.disk_limits
        over = np.flatnonzero(scope.relieved & (excess > self.disk_limits * ROUNDING))
        if not len(over):
            self.left_out.clear()  # Partitions that cannot move do not matter if others were enough.
        percent = self.goals.below_percent
        bound = "its share of the brokers' bytes" if percent is None else f"{percent} percent of its disks"
        self.left_out += [
            f"broker {self.snapshot.brokers.ids[at]} keeps {layout.loads[at, DISK]:.0f} bytes, {excess[at]:.0f} more than"
            f" {bound}: no other broker may take another of its replicas and stay below the same bound; allow more, add"
            " brokers or remove data"
            for at in over.tolist()
        ]

    def _must(self, slots: Slots, reason: Reason) -> bool:
        """Place these slots. Put the partitions with a slot that fits nowhere back as they were, and say so."""
        layout = self.layout
        if not len(slots):
            return False
        partitions = np.unique(slots // layout.width)
        self.bits[partitions] |= reason.bit
        left = place(layout, slots, Placing(receivers=self.scope.receivers, must_leave=True), self.rng)
        if len(left):
            stuck = np.unique(left // layout.width)
            layout.replicas[stuck] = self.original[stuck]
            layout.recompute()
            self.bits[stuck] = 0
            self.scope.partitions[stuck] = False
            names = ", ".join(self.snapshot.partitions.name(int(at)) for at in stuck[:3])
            more = f" and {len(stuck) - 3} more" if len(stuck) > 3 else ""
            self.left_out.append(f"{names}{more} ({reason}): no broker that may take the replica has room for it")
        return len(left) < len(slots)

    def _find_crowded(self) -> Slots:
        """Return one slot for each partition that has more replicas in a rack than it must.

        It is on the broker that is most above its bounds, also if that leads: its departure saves another copy."""
        layout, width = self.layout, self.layout.width
        racks = layout.rack[layout.replicas]
        shared = np.zeros(len(racks), dtype=np.bool_)
        for at in range(1, width):
            shared |= ((racks[:, at, None] == racks[:, :at]) & (racks[:, at, None] >= 0)).any(axis=1)
        rows = np.flatnonzero(shared & self.scope.partitions)
        slots = (rows[:, None] * width + np.arange(width)).ravel()
        slots = slots[layout.takes[layout.replicas.ravel()[slots]]]
        others, home = layout.find_others(slots), layout.replicas.ravel()[slots]
        crowd = layout.count_in_racks(others, home[:, None])[:, 0]
        slots, home = (each[crowd > find_least_crowd(layout, others, self.scope.receivers)] for each in (slots, home))
        excess = (layout.compute_relative() - self.bounds)[home, :OF_A_REPLICA].max(axis=1, initial=-np.inf)
        order = np.lexsort((slots % width == 0, -excess, slots // width))
        slots = slots[order]
        first: Slots = slots[np.unique(slots // width, return_index=True)[1]]
        return first

    def _remove_surplus(self) -> None:
        """Remove replicas beyond the wanted number: out of sync first, then crowded racks, then full brokers.

        A partition with too many replicas on excluded brokers stays as it is."""
        layout, scope = self.layout, self.scope
        in_sync = np.zeros_like(self.original, dtype=np.bool_)
        in_sync[:, : self.snapshot.partitions.in_sync.shape[1]] = self.snapshot.partitions.in_sync
        alive = np.append(self.snapshot.brokers.is_live, np.False_)
        excluded = np.append(scope.excluded, np.False_)
        stuck = scope.partitions & (excluded[layout.replicas].sum(axis=1) > scope.factors)
        if stuck.any():
            scope.partitions[stuck] = False
            self.left_out.append(
                f"{int(stuck.sum())} partitions keep their replicas: more are on excluded brokers than they are to have"
            )
        while True:
            surplus = np.flatnonzero(scope.partitions & ((layout.replicas >= 0).sum(axis=1) > scope.factors))
            if not len(surplus):
                break
            row = layout.replicas[surplus]
            racks = layout.rack[row]
            crowd = (racks[:, :, None] == racks[:, None, :]).sum(axis=2)
            good = in_sync[surplus] & alive[row]
            badness = np.where(good, 0, 1000) + crowd + np.minimum(layout.compute_relative()[row].max(axis=2), 9) / 10
            badness[:, 0] -= 0.5
            badness[(row < 0) | excluded[row]] = -1
            worst = badness.argmax(axis=1)
            kept = np.arange(layout.width) != worst[:, None]
            for table, filler in ((layout.replicas, NO_BROKER), (in_sync, False)):
                table[surplus] = np.column_stack(
                    [table[surplus][kept].reshape(len(surplus), -1), np.full(len(surplus), filler)]
                )
            self.bits[surplus] |= Reason.REPLICATION_FACTOR.bit
            layout.recompute()

    def improve(self) -> None:
        """Even out loads and leaders, until a repetition improves nothing."""
        layout = self.layout
        layout.recompute()
        for _ in range(_MOST_SPREADS if self.goals.mode is Mode.SPREAD else _MOST_REPEATS):
            start, score, exposure = layout.replicas.copy(), self._score(), self._compute_exposure()
            if score <= 0:
                break
            after = self._improve_once(start)
            # Exposure that stays is no goal, and must not make other improvements look small.
            stays = min(exposure, self._compute_exposure())
            if after - stays > (score - stays) * (1 - _LEAST_IMPROVEMENT):
                layout.replicas[:] = start
                layout.recompute()
                break

    def _improve_once(self, start: Ints) -> float:
        """Improve the layout, the best of a few ways if the cluster is not large. Return its score."""
        layout = self.layout
        moves = self.goals.mode in (Mode.REBALANCE, Mode.EXPAND) and bool(
            self._find_excess().any() or self._compute_exposure()
        )
        has_time = self.goals.mode is Mode.REBALANCE and layout.replicas.size <= _MOST_SLOTS_FOR_WAYS
        best, found = (np.inf, np.inf), start
        for first_aim in _FIRST_AIMS if moves and has_time else _FIRST_AIMS[:1]:
            layout.replicas[:] = start
            layout.recompute()
            self._restart_random()
            if self.goals.mode is Mode.SPREAD:
                self._spread_topics()
            self._separate()
            if moves:
                self._balance(start, (first_aim, *_AIMS))
            self._order()
            rating = round_up_excess(self._score()), self._count_bytes(start)
            if rating < best:
                best, found = rating, layout.replicas.copy()
        if moves and self.goals.mode is Mode.REBALANCE and is_small(layout):
            layout.replicas[:] = found
            layout.recompute()
            excess = round_up_excess(self._find_excess().sum() + self._compute_exposure())
            search_thoroughly(layout, start, self.bounds, self._find_allowed(), self.rng)
            self._order()
            if round_up_excess(self._find_excess().sum() + self._compute_exposure()) <= excess:
                found = layout.replicas.copy()
        layout.replicas[:] = found
        layout.recompute()
        return self._score()

    def _compute_exposure(self) -> float:
        """Return how exposed a partition is in the mean, in modes that move replicas for that."""
        layout = self.layout
        if layout.together is None or self.goals.mode not in _SEPARATING:
            return 0.0
        return float(layout.find_exposure(layout.replicas)[self.scope.partitions].sum()) / len(layout.replicas)

    def _separate(self) -> None:
        """Move a replica of each partition on brokers that failed together, if a less exposed broker may take it."""
        if not self._compute_exposure():
            return
        layout = self.layout
        exposure = layout.find_exposure(layout.replicas)
        exposure[~layout.takes[layout.replicas] | ~self.scope.partitions[:, None]] = 0
        rows = np.flatnonzero(exposure.any(axis=1))
        fullness = np.minimum(layout.compute_relative()[layout.replicas[rows]].max(axis=2), 9)
        worst = (exposure[rows] * (1 + fullness / 1000)).argmax(axis=1)
        rules = Placing(receivers=self.scope.receivers, must_leave=False, less_exposed=True)
        place(layout, rows * layout.width + worst, rules, self.rng)

    def _order(self) -> None:
        """Even out leaders and those who follow them by the order of the replicas."""
        layout, mode = self.layout, self.goals.mode
        everything = mode in (Mode.REBALANCE, Mode.EXPAND, Mode.LEADERS_ONLY)
        changes = self.scope.partitions if everything else (layout.replicas != self.original).any(axis=1)
        changes = changes & self.scope.partitions
        if mode is Mode.SPREAD:
            most_led = self._find_most_led_of_topics()
            spread_topic_leaders(layout, most_led, self.scope.partitions, self._find_possible_leaders())
        elif self._find_excess()[:, 3:].any():
            rotate(layout, self.bounds, changes, self._find_possible_leaders(), self.rng)
            if everything and is_small(layout):
                exchange_leaders(layout, self.bounds, changes, self._find_possible_leaders())
        spread_next_leaders(layout, changes, self._find_possible_leaders())
        if mode is not Mode.SPREAD and compute_next_leader_excess(layout) > 0:
            turn_next_leaders(layout, self.bounds, changes, self._find_possible_leaders())
        layout.recompute()

    def _balance(self, start: Ints, aims: tuple[float, ...]) -> None:
        """Let brokers above the band give replicas away, turn by turn."""
        layout, scope = self.layout, self.scope
        rules = Placing(receivers=scope.receivers, must_leave=False)
        givers = scope.takes.copy()
        movable = np.repeat(scope.partitions, layout.width) & (layout.replicas.ravel() >= 0)
        moved = np.zeros(layout.replicas.size, dtype=np.bool_)
        if self.goals.mode is Mode.EXPAND:
            givers[scope.receivers] = False
            pool = evict_exactly(layout, self.bounds, movable, givers, self.rng)
            moved[pool] = True
            place(layout, pool, rules, self.rng)
        for aim in aims:
            pool = evict(layout, self.bounds, aim, movable, moved, givers)
            if not len(pool):
                break
            moved[pool] = True
            place(layout, pool, rules, self.rng)
        relieve_the_last(layout, self.bounds, movable, scope.receivers, scope.takes)
        return_home(layout, start, self.bounds, givers)

    def _count_bytes(self, start: Ints) -> float:
        """Return the bytes that are copied from a start."""
        now = self.layout.replicas
        new = (now >= 0) & ~(now[:, :, None] == start[:, None, :]).any(axis=2)
        return float(new.sum(axis=1) @ self.layout.resources.of_replica[:, DISK])

    def _find_allowed(self) -> Allowed:
        """Return the steps that the thorough search may take."""
        partitions = self.snapshot.partitions
        lives = np.append(self.snapshot.brokers.is_live, np.False_)
        may_lead = np.tile(lives, (len(partitions), 1))
        rows, positions = np.nonzero(~partitions.in_sync)
        may_lead[rows, partitions.replicas[rows, positions]] = False
        return Allowed(
            may_change=self.scope.partitions, may_take=self.scope.takes, may_lead=np.ascontiguousarray(may_lead[:, :-1])
        )

    def _spread_topics(self) -> None:
        layout = self.layout
        most = self._find_most_of_topics()
        surplus = np.flatnonzero(self._find_topic_surplus(most) & np.repeat(self.scope.partitions, layout.width))
        rules = Placing(receivers=self.scope.receivers, must_leave=False, most_of_a_topic=most)
        place(layout, surplus, rules, self.rng)

    def _find_most_of_topics(self) -> Ints:
        """Return how many replicas of each topic a broker should have at most."""
        factors = np.bincount(self.layout.topic, self.scope.factors, len(self.layout.topic_sizes))
        return np.ceil(factors / max(len(self.scope.receivers), 1)).astype(np.int32)

    def _find_most_led_of_topics(self) -> Ints:
        """Return how many partitions of each topic a broker should lead at most."""
        return np.ceil(self.layout.topic_sizes / max(len(self.scope.receivers), 1)).astype(np.int32)

    def _find_topic_surplus(self, most: Ints) -> Bools:
        """Return True for each slot that is one too many of its topic on its broker: the smallest ones."""
        layout = self.layout
        flat = layout.replicas.ravel()
        topic = np.repeat(layout.topic, layout.width).astype(np.int64)
        largest_first = np.argsort(-np.repeat(layout.resources.of_replica[:, DISK], layout.width), kind="stable")
        rank = np.empty(len(flat), dtype=np.int64)
        rank[largest_first] = rank_in_group((topic * (layout.brokers + 1) + flat)[largest_first])
        return layout.takes[flat] & (rank >= most[topic])

    def _count_topic_surplus(self) -> float:
        """Return the part of the replicas, and that of the leaders, that are too many of their topic on their broker."""
        layout, most_led = self.layout, self._find_most_led_of_topics()
        leaders = layout.replicas[:, 0]
        rank = rank_in_group(layout.topic.astype(np.int64) * (layout.brokers + 1) + leaders)
        led = layout.takes[leaders] & (rank >= most_led[layout.topic]) & self.scope.partitions
        slots = self._find_topic_surplus(self._find_most_of_topics()) & np.repeat(self.scope.partitions, layout.width)
        return float(slots.sum()) / layout.replicas.size + float(led.sum()) / len(layout.replicas)

    def _find_possible_leaders(self) -> Bools:
        """Return True for each replica that may lead: it is in sync, or the plan makes it, on a live broker."""
        partitions, now = self.snapshot.partitions, self.layout.replicas
        lagging = np.where(partitions.in_sync, NO_BROKER, partitions.replicas)
        behind = (now[:, :, None] == lagging[:, None, :]).any(axis=2)
        may_lead: Bools = np.append(self.snapshot.brokers.is_live, np.False_)[now] & ~behind & (now >= 0)
        return may_lead

    def _find_excess(self) -> Floats:
        """Return what each broker bears above its bounds."""
        excess = (self.layout.compute_relative() - self.bounds)[:-1]
        return np.maximum(excess - 1e-6, 0)

    def _score(self) -> float:
        """Return how far the layout is from the goals. 0: it fulfils them."""
        mode, layout = self.goals.mode, self.layout
        if mode is Mode.RELIEVE:
            return 0.0
        if mode in (Mode.DRAIN, Mode.REPLICATION_FACTOR) and not (layout.replicas != self.original).any():
            return 0.0
        if mode is Mode.SPREAD:
            # It does not reorder what is spread already, so next leaders are no reason to go on.
            return self._count_topic_surplus() + self._compute_exposure()
        score = compute_next_leader_excess(layout) / max(len(layout.replicas), 1) + self._compute_exposure()
        excess = self._find_excess()
        return score + float(excess.sum() if mode in (Mode.REBALANCE, Mode.EXPAND) else excess[:, 3:].sum())

    def finish(self) -> Plan:
        """Return the plan: the changes within the limits, in batches."""
        snapshot, layout = self.snapshot, self.layout
        changed = np.flatnonzero((layout.replicas != self.original).any(axis=1))
        self._explain(changed)
        changed, copied = self._keep_limits(changed)
        resources = layout.resources
        used = compute_loads(self.original, resources.of_replica, resources.of_leader, layout.brokers)
        batch = pack_batches(
            self.original[changed],
            layout.replicas[changed],
            snapshot.partitions.leader[changed],
            resources.of_replica[changed, DISK],
            used[:-1, DISK],
            resources.capacity[:-1, DISK],
            self.goals.limits.max_batch_bytes_per_broker,
        )
        never = changed[batch == NEVER]
        if len(never):
            layout.replicas[never] = self.original[never]
            self.left_out.append(
                f"{len(never)} changes: no disk has room for a copy while the old one still exists; free some disk first"
            )
        kept = batch != NEVER
        changed, copied, batch = changed[kept], copied[kept], batch[kept]
        order = np.lexsort((changed, -np.nan_to_num(copied), batch))
        changed, copied, batch = changed[order], copied[order], batch[order]
        layout.recompute()
        unmeasured = find_unmeasured(snapshot)
        per_share = resources.per_share[:-1]
        with np.errstate(divide="ignore"):
            shares = np.where(per_share > 0, 1 / per_share, np.nan)
        return Plan(
            snapshot=snapshot,
            snapshot_hash=snapshot.compute_hash(),
            goals=self.goals,
            partition=changed.astype(np.int32),
            after=layout.replicas[changed],
            bytes_copied=copied,
            reasons=self.bits[changed],
            batch=batch,
            resources=RESOURCES,
            loads_before=np.where(unmeasured, np.nan, self._compute_loads_before()),
            loads_after=np.where(unmeasured, np.nan, layout.loads[:-1]),
            shares=shares,
            bounds=self.bounds[:-1],
            unknown=describe_unknown(snapshot, self.scope.takes),
            left_out=tuple(self.left_out),
        )

    def _compute_loads_before(self) -> Floats:
        leader = self.snapshot.partitions.leader[:, None]
        resources = self.layout.resources
        of_leader = measure_leaders(self.snapshot, self.snapshot.partitions.count_replicas())
        loads = compute_loads(self.original, resources.of_replica, of_leader, self.layout.brokers)
        loads[:, 3:] = compute_loads(leader, resources.of_replica, of_leader, self.layout.brokers)[:, 3:]
        return loads[:-1]

    def _explain(self, changed: Ints) -> None:
        """Give a reason to each change that has none yet."""
        layout, before, after = self.layout, self.original[changed], self.layout.replicas[changed]
        start = compute_loads(self.original, layout.resources.of_replica, layout.resources.of_leader, layout.brokers)
        excess = start * layout.resources.per_share - self.bounds
        bits = np.array([reason.bit for reason in _BALANCE_REASONS], dtype=np.int32)
        of_copy, of_order = bits[excess[:, :3].argmax(axis=1)], bits[3 + excess[:, 3:].argmax(axis=1)]
        of_copy[start[:, DISK] > layout.resources.capacity[:, DISK]] = Reason.CAPACITY.bit
        if self.goals.mode is Mode.SPREAD:
            of_copy[:] = of_order[:] = Reason.TOPIC_SPREAD.bit
        left = (before >= 0) & ~(before[:, :, None] == after[:, None, :]).any(axis=2)
        leads = (after[:, 0] != before[:, 0]) & (before == after[:, :1]).any(axis=1)
        bare = self.bits[changed] == 0
        found = np.where(left & bare[:, None], of_copy[before], 0)
        reasons = np.bitwise_or.reduce(found, axis=1, initial=0) | np.where(leads, of_order[before[:, 0]], 0)
        parted = left.any(axis=1) & (layout.find_exposure(after).sum(axis=1) < layout.find_exposure(before).sum(axis=1))
        reasons = reasons | np.where(parted, Reason.EXPOSURE.bit, 0)
        reasons = np.where((reasons == 0) & bare, Reason.NEXT_LEADER.bit, reasons)
        self.bits[changed] |= reasons.astype(np.int32)

    def _keep_limits(self, changed: Ints) -> tuple[Ints, Floats]:
        """Return the changes within the limits, and the bytes that each copies. Take the others back."""
        layout, limits = self.layout, self.goals.limits
        before, after = self.original[changed], layout.replicas[changed]
        copies = ((after >= 0) & ~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum(axis=1)
        copied = np.where(copies > 0, copies * self.snapshot.partitions.size_bytes[changed], 0.0)
        if limits.max_bytes is None and limits.max_moves is None:
            return changed, copied
        must = (self.bits[changed] & _MUST_BITS) > 0
        order = np.lexsort((changed, -np.nan_to_num(copied), ~must))
        kept = np.ones(len(changed), dtype=np.bool_)
        if limits.max_bytes is not None:
            size = layout.resources.of_replica[changed, DISK]
            kept[order] = fit_in_turn((copies * size)[order], limits.max_bytes)
        if limits.max_moves is not None:
            kept[order[np.cumsum(kept[order]) > limits.max_moves]] = False
        if not kept.all():
            cut = changed[~kept]
            layout.replicas[cut] = self.original[cut]
            self.left_out.append(f"{len(cut)} changes exceed the limits; another plan can make them afterwards")
        return changed[kept], copied[kept]


def _make_together(snapshot: LoadSnapshot, goals: Goals, takes: Bools) -> Floats | None:
    """Return how often each two brokers failed together, as a part of the most frequent pair; None without a history.

    A loss of all brokers is a reason against no place, so what all pairs of receiving brokers share does not count."""
    row_of = {broker: at for at, broker in enumerate(snapshot.brokers.ids.tolist())}
    together = np.zeros((len(row_of) + 1, len(row_of) + 1))
    for first, second, times in goals.failed_together:
        together[[row_of[first], row_of[second]], [row_of[second], row_of[first]]] += times
    members = np.flatnonzero(takes)
    among = together[np.ix_(members, members)]
    np.fill_diagonal(among, np.inf)
    if np.isfinite(shared := among.min(initial=np.inf)):
        np.fill_diagonal(among, shared)
        together[np.ix_(members, members)] = among - shared
    most = together.max(initial=0)
    return np.asarray(together / most) if most > 0 else None
