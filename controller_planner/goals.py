"""The wishes that a plan fulfils: a mode, its scope, and its limits."""

import math
from dataclasses import dataclass, field
from enum import StrEnum


class Mode(StrEnum):
    """The kind of plan."""

    REBALANCE = "rebalance"
    """Repair racks, then bring each resource of each broker below the band, with the fewest bytes."""
    DRAIN = "drain"
    """Take all replicas off brokers. Other replicas stay."""
    RELIEVE = "relieve"
    """Take the fewest bytes off brokers with full disks. Replicas of other brokers stay."""
    EXPAND = "expand"
    """Fill new brokers, from those that are above the band, and even out leaders. Old brokers get no replicas."""
    REPLICATION_FACTOR = "replicationFactor"
    """Give the topics in scope another number of replicas."""
    SPREAD = "spread"
    """Repair racks, and spread the replicas of each topic evenly over the brokers."""
    LEADERS_ONLY = "leadersOnly"
    """Reorder replicas so that leaders and what consumers read are even. No byte is copied."""


class InvalidGoals(ValueError):
    """Goals that contradict themselves or the snapshot. The message says what to change."""


class Unsatisfiable(ValueError):
    """Constraints that no plan can fulfil. The message names the constraint, and what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a plan. None: unlimited."""

    max_bytes: float | None = None
    """Bytes that the plan copies in sum."""
    max_moves: int | None = None
    """Partitions that the plan changes, reorders included."""
    max_batch_bytes_per_broker: float | None = None
    """Bytes that a broker receives, or sends as a leader, in one batch: its bandwidth times a batch's duration."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_moves", "max_batch_bytes_per_broker"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidGoals(f"{name} is {value}; give a positive number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The goals of a plan. Names and ids that the snapshot lacks are refused."""

    mode: Mode = Mode.REBALANCE
    brokers: tuple[int, ...] = ()
    """Ids: those to drain, to relieve, or to fill (none given: the brokers without replicas). Other modes take none."""
    topics: tuple[str, ...] | None = None
    """The topics that may change. None: all."""
    excluded_topics: tuple[str, ...] = ()
    excluded_brokers: tuple[int, ...] = ()
    """Ids of brokers that neither receive nor give replicas."""
    racks: tuple[str, ...] | None = field(default=None, repr=False)
    """The racks whose brokers receive and give replicas. Named brokers give theirs in any rack. None: all. It is not in the
    text of the goals, as `failed_together`."""
    replication_factor: int | None = None
    below_percent: int | None = None
    """For the mode relieve: percentage of the capacity of its disks that a named broker, and one that gets its replicas,
    may have in use. None: the band around the mean of the brokers."""
    band: float = 1.05
    """A broker may bear this much more of a resource than its share before the plan takes something off it."""
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    failed_together: tuple[tuple[int, int, float], ...] = field(default=(), repr=False)
    """Pairs of ids of brokers that were lost together, with how often. Replicas of a partition avoid such pairs. It is not
    in the text of the goals, so that plans without it keep their hash."""

    def __post_init__(self) -> None:
        if not 1 < self.band <= 10:
            raise InvalidGoals(f"band is {self.band}; give a number above 1 and up to 10, such as 1.05")
        if self.seed < 0:
            raise InvalidGoals(f"seed is {self.seed}; give 0 or more")
        if (self.mode is Mode.REPLICATION_FACTOR) != (self.replication_factor is not None):
            raise InvalidGoals(f"a replication factor and the mode {Mode.REPLICATION_FACTOR} need each other")
        if self.replication_factor is not None and not 1 <= self.replication_factor <= 1000:
            raise InvalidGoals(f"replication_factor is {self.replication_factor}; give 1 to 1000")
        if self.below_percent is not None and self.mode is not Mode.RELIEVE:
            raise InvalidGoals(f"a percentage of the disks is for the mode {Mode.RELIEVE}, and not for {self.mode}")
        if self.below_percent is not None and not 1 <= self.below_percent <= 100:
            raise InvalidGoals(f"below_percent is {self.below_percent}; give 1 to 100")
        if self.mode in (Mode.DRAIN, Mode.RELIEVE) and not self.brokers:
            raise InvalidGoals(f"name the brokers to {self.mode}")
        if self.brokers and self.mode not in (Mode.DRAIN, Mode.RELIEVE, Mode.EXPAND):
            raise InvalidGoals(
                f"brokers are for the modes {Mode.DRAIN}, {Mode.RELIEVE} and {Mode.EXPAND}, and not for {self.mode}"
            )
        for first, second, times in self.failed_together:
            if first == second or not (times > 0 and math.isfinite(times)):
                raise InvalidGoals(
                    f"brokers {first} and {second} failed together {times} times; give a pair and a count"
                )
        if both := set(self.brokers) & set(self.excluded_brokers):
            raise InvalidGoals(f"brokers are named and excluded: {', '.join(map(str, sorted(both)))}")
