"""Throttles in clusters without ZooKeeper: the next write to the record, or to Kafka's configurations.

The wishes and the claims are those of `controller_core.model.throttles`. Kafka has no conditional writes and no place
for the record, so the record is a document elsewhere with compare-and-set. It names each value before Kafka has it, and
until Kafka no longer has it. So another process can continue after any write. Lists are appended to and subtracted
from. Only a rate, or an empty list, is written as a whole, a moment after it was read. The rate is set as the default
of all brokers, because a broker's own rate can only be set while it lives. The lowest rate of all owners holds.

If a topic refuses a change, everything else is settled. Only the owners that have a move of the topic stay unsettled.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from controller_core.client.reassigning.throttle_configs import Changes, Configs, find_changes
from controller_core.model.throttles import (
    ALL_BROKERS,
    RATES,
    Claim,
    Claims,
    EntityPath,
    Move,
    Record,
    Throttle,
    Wanted,
    adjust_config,
    combine_throttles,
    topic_entity,
)
from controller_core.wire.requests.configs import ConfigChange

_ENDED: Final = Move(origin=(), target=())
"""A move that needs no throttle. It stays in the record until its topic has none of the move's replicas in its lists."""


def list_entities(record: Record, throttles: Mapping[str, Throttle]) -> list[EntityPath]:
    """Return the configurations that the next write depends on."""
    return sorted({*record.claims, *_combine(throttles)})


def set_throttle(throttles: Mapping[str, Throttle], owner: str, throttle: Throttle) -> dict[str, Throttle]:
    """Return the throttles with this one of the owner. Its other moves are over."""
    known = throttles[owner].moves if owner in throttles else {}
    return {**throttles, owner: replace(throttle, moves={**dict.fromkeys(known, _ENDED), **throttle.moves})}


def end_throttle(throttles: Mapping[str, Throttle], owner: str) -> dict[str, Throttle]:
    """Return the throttles with that of the owner over, if it has one."""
    return set_throttle(throttles, owner, replace(throttles[owner], moves={})) if owner in throttles else {**throttles}


def find_next_write(
    record: Record, throttles: Mapping[str, Throttle], configs: Configs, refused: Collection[EntityPath] = ()
) -> Record | Changes | None:
    """Return the record or the changes to write next, so that the owners have exactly these throttles. None: they have.

    Changes follow from the record alone, so two operators that do this at once agree. `refused`: configurations that
    are not shown or not changed. Their claims stay, because Kafka may have, or yet get, a value of them. Raises
    `ListTooLongError`."""
    wanted = _combine(throttles)
    changes: dict[EntityPath, Sequence[ConfigChange]] = {}
    claims: dict[EntityPath, Mapping[str, Claim]] = {}
    for entity, config in configs.items():
        after, claimed = adjust_config(config, record.claims.get(entity, {}), wanted.get(entity, {}))
        if claimed:
            claims[entity] = claimed
        if entity not in refused and (changed := find_changes(entity, config, after)):
            changes[entity] = changed
    during = Record(throttles=throttles, claims=_unite(record.claims, claims))
    if record != during:
        return during
    kept = {entity: found for entity, found in during.claims.items() if entity in refused}
    final = Record(throttles=_drop_ended(throttles, refused), claims={**claims, **kept})
    return changes or (final if record != final else None)


def _drop_ended(throttles: Mapping[str, Throttle], refused: Collection[EntityPath]) -> dict[str, Throttle]:
    """Return the throttles without the moves that are over, unless Kafka may still have something of them."""
    left = {}
    for owner, throttle in throttles.items():
        moves = {
            tp: move
            for tp, move in throttle.moves.items()
            if move != _ENDED or ALL_BROKERS in refused or topic_entity(tp.topic) in refused
        }
        if moves:
            left[owner] = replace(throttle, moves=moves)
    return left


def _combine(throttles: Mapping[str, Throttle]) -> Wanted:
    """Return what all owners together want, with one rate for all brokers: the lowest.

    The other rates are ours as well, because another operator may just set one of them."""
    wanted = {at: each for at, each in combine_throttles(throttles.values()).items() if not at.startswith("brokers/")}
    holding = (each for each in throttles.values() if any(move != _ENDED for move in each.moves.values()))
    if rates := sorted({each.bytes_per_second for each in holding}):
        wanted[ALL_BROKERS] = dict.fromkeys(RATES, tuple(map(str, rates)))
    return wanted


def _unite(before: Claims, after: Claims) -> Claims:
    """Return the claims during a change: a value that was ours, or will be."""
    united = {entity: dict(claims) for entity, claims in before.items()}
    for entity, claims in after.items():
        ours = united.setdefault(entity, {})
        for name, claim in claims.items():
            known = ours[name].values if name in ours else ()
            ours[name] = Claim(values=tuple(dict.fromkeys((*known, *claim.values))), is_created=claim.is_created)
    return united
