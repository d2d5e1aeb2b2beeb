"""Replication throttles of reassignments: the values that configurations need, next to the values of others.

The owner of a throttle wants a limit in bytes per second for some moves. Brokers read throttles from configurations
that others write as well: the rates from those of brokers, the throttled replicas from those of topics (KIP-73). So
each value that was added is recorded as a claim. Values of others are never changed: an existing rate stays, replicas
are added to an existing list and removed again later, and `*` (all replicas) needs no addition. If somebody overwrites
a claimed value, it belongs to them from then on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller_core.model.ids import BrokerId, TopicName, TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)

ALL_REPLICAS: Final = "*"

THROTTLE_SETTING: Final = "kontroller.reassignment.throttle"
"""The controller's own setting that lists the owners of throttles. With `.OWNER` it is the throttle of an owner."""

EntityPath: TypeAlias = str
"""The configuration of a broker or a topic, relative to `/config`: `brokers/1`, `topics/orders`."""
Values: TypeAlias = tuple[str, ...]
"""Our part of the value of one setting: a rate, or replicas such as `0:1`, partition and broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The present and the wanted replicas of a partition: OAR and RAR."""

    origin: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        return tuple(broker for broker in self.target if broker not in self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """The limit that one owner wants for its moves, for each broker and each direction."""

    bytes_per_second: int
    moves: Mapping[TopicPartition, Move]
    is_begun: bool = False
    """True once the controller has had any of the moves in progress.

    When none is left after that, the throttle is over.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Our part of the value of one setting."""

    values: Values
    """Of a rate, all values that may be ours: while it changes, the old one and the new one."""
    is_created: bool
    """True if the setting was absent before. It is then removed together with the last value."""


Wanted: TypeAlias = Mapping[EntityPath, Mapping[str, Values]]
Claims: TypeAlias = Mapping[EntityPath, Mapping[str, Claim]]

ALL_BROKERS: Final[EntityPath] = "brokers/<default>"
"""The defaults of all brokers, by the name that they have in ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The throttles of one Kafka cluster: the wish of each owner, and our part of the configurations."""

    throttles: Mapping[str, Throttle] = field(default_factory=dict)
    claims: Claims = field(default_factory=dict)


def broker_entity(broker: BrokerId) -> EntityPath:
    return f"brokers/{broker}"


def topic_entity(topic: TopicName) -> EntityPath:
    return f"topics/{topic}"


def combine_throttles(throttles: Iterable[Throttle]) -> Wanted:
    """Return what all owners together want.

    As in Kafka's tool, the leader's side holds for all replicas from before, the follower's side for those that are
    added, and the rates for every broker involved. If owners want different rates, the smallest one keeps every
    promise.
    """
    rates: dict[BrokerId, int] = {}
    replicas: defaultdict[EntityPath, defaultdict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for throttle in throttles:
        for (topic, partition), move in throttle.moves.items():
            for broker in (*move.origin, *move.target):
                rates[broker] = min(throttle.bytes_per_second, rates.get(broker, throttle.bytes_per_second))
            for setting, brokers in ((LEADER_REPLICAS, move.origin), (FOLLOWER_REPLICAS, move.adding)):
                replicas[topic_entity(topic)][setting].update({f"{partition}:{broker}": None for broker in brokers})
    wanted = {broker_entity(broker): dict.fromkeys(RATES, (str(r),)) for broker, r in rates.items()}
    lists = {entity: {name: tuple(found) for name, found in lists.items()} for entity, lists in replicas.items()}
    return {**wanted, **lists}


def adjust_config(
    config: Mapping[str, str], claims: Mapping[str, Claim], wanted: Mapping[str, Values]
) -> tuple[dict[str, str], dict[str, Claim]]:
    """Return the configuration as it should be, and our claims in it."""
    after, claimed = dict(config), {}
    for setting in dict.fromkeys((*claims, *wanted)):
        adjust = _adjust_list if setting in LISTS else _adjust_rate
        value, claim = adjust(config.get(setting), claims.get(setting), wanted.get(setting, ()))
        after.pop(setting, None)
        if value is not None:
            after[setting] = value
        if claim is not None:
            claimed[setting] = claim
    return after, claimed


def _adjust_rate(present: str | None, claim: Claim | None, wanted: Values) -> tuple[str | None, Claim | None]:
    is_ours = present is None or (claim is not None and present in claim.values)
    if not is_ours:
        return present, None
    return (wanted[0], Claim(values=wanted, is_created=True)) if wanted else (None, None)


def _adjust_list(present: str | None, claim: Claim | None, wanted: Values) -> tuple[str | None, Claim | None]:
    found = present.split(",") if present else []
    if any(replica.strip() == ALL_REPLICAS for replica in found):
        return present, None
    ours = claim.values if claim is not None and present is not None else ()
    others = [replica for replica in found if replica not in ours]
    known = {replica.strip() for replica in others}
    added = tuple(replica for replica in wanted if replica not in known)
    is_created = present is None or (claim is not None and claim.is_created)
    if added:
        value = ",".join([*(replica for replica in others if replica), *added])
        return value, Claim(values=added, is_created=is_created)
    return (None if is_created and not others else ",".join(others)), None
