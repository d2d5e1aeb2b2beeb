"""Replication throttles of reassignments: what must stand in the configurations, beside what others have put there.

A throttle has an owner, who wants so many bytes per second for some moves. Brokers find it in configurations that others
write as well: the rates in those of the brokers, the replicas that they hold for in those of the topics (KIP-73). So what
was put there is remembered, value by value, as a claim. What others have set is never changed: a rate that is there stays
as it is, replicas are added to a list beside the others and taken out again, and `*`, all replicas, needs nothing added.
Where somebody has overwritten a claimed value, it is theirs from then on.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller_core.model.ids import BrokerId, TopicName, TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

ALL_REPLICAS: Final = "*"
_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)

EntityPath: TypeAlias = str
"""The configuration of a broker or a topic, relative to `/config`: `brokers/1`, `topics/orders`."""
Values: TypeAlias = tuple[str, ...]
"""What one setting holds of ours: a rate, or replicas such as `0:1`, partition and broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Where a partition's replicas are and where they are to be: OAR and RAR."""

    origin: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        return tuple(broker for broker in self.target if broker not in self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """What one owner wants: a limit to what its moves may take of each broker, on the way in and on the way out."""

    bytes_per_second: int
    moves: Mapping[TopicPartition, Move]
    is_begun: bool = False
    """Whether the controller has seen any of the moves under way; when none is any more, the throttle is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What of one setting's value is ours."""

    values: Values
    is_created: bool
    """Whether the setting was absent before, and so is removed with the last value."""


Wanted: TypeAlias = Mapping[EntityPath, Mapping[str, Values]]
Claims: TypeAlias = Mapping[EntityPath, Mapping[str, Claim]]


def broker_entity(broker: BrokerId) -> EntityPath:
    return f"brokers/{broker}"


def topic_entity(topic: TopicName) -> EntityPath:
    return f"topics/{topic}"


def wanted_by(throttles: Iterable[Throttle]) -> Wanted:
    """What all owners together want.

    As Kafka's tool has it: the leader's side holds for all replicas from before, the follower's for those that are added,
    and the rates for every broker involved. Where owners want different rates, the smallest keeps every promise."""
    rates: dict[BrokerId, int] = {}
    replicas: defaultdict[EntityPath, defaultdict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for throttle in throttles:
        for (topic, partition), move in throttle.moves.items():
            for broker in (*move.origin, *move.target):
                rates[broker] = min(throttle.bytes_per_second, rates.get(broker, throttle.bytes_per_second))
            for setting, brokers in ((LEADER_REPLICAS, move.origin), (FOLLOWER_REPLICAS, move.adding)):
                replicas[topic_entity(topic)][setting].update({f"{partition}:{broker}": None for broker in brokers})
    wanted = {
        broker_entity(broker): dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), (str(r),)) for broker, r in rates.items()
    }
    lists = {entity: {name: tuple(found) for name, found in lists.items()} for entity, lists in replicas.items()}
    return {**wanted, **lists}


def adjusted(
    config: Mapping[str, str], claims: Mapping[str, Claim], wanted: Mapping[str, Values]
) -> tuple[dict[str, str], dict[str, Claim]]:
    """A configuration as it should be, and what of it is ours then."""
    after, claimed = dict(config), {}
    for setting in dict.fromkeys((*claims, *wanted)):
        adjust = _adjusted_list if setting in _LISTS else _adjusted_rate
        value, claim = adjust(config.get(setting), claims.get(setting), wanted.get(setting, ()))
        after.pop(setting, None)
        if value is not None:
            after[setting] = value
        if claim is not None:
            claimed[setting] = claim
    return after, claimed


def _adjusted_rate(present: str | None, claim: Claim | None, wanted: Values) -> tuple[str | None, Claim | None]:
    is_ours = present is None or (claim is not None and (present,) == claim.values)
    if not is_ours:
        return present, None
    return (wanted[0], Claim(values=wanted, is_created=True)) if wanted else (None, None)


def _adjusted_list(present: str | None, claim: Claim | None, wanted: Values) -> tuple[str | None, Claim | None]:
    found = [] if present is None else present.split(",")
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
