"""Questions of what would happen: a rack or brokers lost, brokers added. The answer is a changed snapshot.

After a loss each partition is led by its first replica that is in sync and lives, as the controller would elect it."""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controller_core.model.wording import format_count, list_some, name_all
from controller_planner.loads import NO_BROKER, Brokers, LoadSnapshot
from controller_planner.losses import elect_leaders

_MOST_ADDED: Final = 10_000
_LARGEST_ID: Final = 2**31 - 1
_LOSE_RACK: Final = re.compile(r"lose rack (?P<rack>\S.*)")
_LOSE_BROKERS: Final = re.compile(r"lose brokers? (?P<brokers>[0-9]{1,10}(?: *, *[0-9]{1,10})*)")
_ADD_BROKERS: Final = re.compile(r"add (?P<count>[0-9]{1,6}) brokers?")
_FORMS: Final = '"lose rack b", "lose broker 3", "lose brokers 3, 4" or "add 2 brokers"'


class UnclearQuestionError(ValueError):
    """A question that is not understood, or not about this cluster. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """The cluster as it would be."""

    snapshot: LoadSnapshot
    lost: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    """The consequences, in words."""


def suppose(question: str, snapshot: LoadSnapshot) -> Supposed:
    """Return the cluster as it would be. Raises `UnclearQuestionError`."""
    text = " ".join(question.split())
    brokers = snapshot.brokers
    if match := _LOSE_RACK.fullmatch(text):
        rack = match["rack"]
        chosen = np.array([each == rack for each in brokers.racks], dtype=np.bool_)
        if not chosen.any():
            known = list_some(sorted({each for each in brokers.racks if each is not None})) or "none"
            raise UnclearQuestionError(f"no broker is in rack {rack}; the racks are: {known}")
        return _lose(snapshot, chosen)
    if match := _LOSE_BROKERS.fullmatch(text):
        wanted = sorted({int(each) for each in match["brokers"].split(",")})
        if unknown := [each for each in wanted if each not in brokers.ids]:
            raise UnclearQuestionError(f"the cluster has no {name_all('broker', unknown)}")
        return _lose(snapshot, np.isin(brokers.ids, wanted))
    if match := _ADD_BROKERS.fullmatch(text):
        return _add(snapshot, int(match["count"]))
    raise UnclearQuestionError(f"{question!r} is not understood: ask {_FORMS}")


def _lose(snapshot: LoadSnapshot, chosen: NDArray[np.bool_]) -> Supposed:
    brokers, partitions = snapshot.brokers, snapshot.partitions
    is_live = brokers.is_live & ~chosen
    leader, can_lead = elect_leaders(partitions, is_live)
    counts = can_lead.sum(axis=1)
    offline, short = (leader == NO_BROKER), (counts < partitions.min_isr) & (leader != NO_BROKER)
    moved = (leader != partitions.leader) & (leader != NO_BROKER)
    lost = tuple(brokers.ids[chosen].tolist())
    return Supposed(
        snapshot=replace(
            snapshot,
            brokers=replace(brokers, is_live=is_live, takes_replicas=brokers.takes_replicas & ~chosen),
            partitions=replace(partitions, leader=leader, in_sync=can_lead),
        ),
        lost=lost,
        lines=(
            f"lost: {name_all('broker', lost)}",
            f"offline, because no replica in sync is left: {_describe(snapshot, offline)}",
            f"below min.insync.replicas, so producers with acks=all fail: {_describe(snapshot, short)}",
            f"leaders on other brokers: {format_count(int(moved.sum()), 'partition')}",
        ),
    )


def _add(snapshot: LoadSnapshot, count: int) -> Supposed:
    """Add brokers to the racks that have the fewest. Each has the median of the known capacities."""
    if not 1 <= count <= _MOST_ADDED:
        raise UnclearQuestionError(f"{count} brokers cannot be added: add 1 to {_MOST_ADDED}")
    brokers = snapshot.brokers
    racks = list(brokers.racks)
    sizes = {rack: racks.count(rack) for rack in sorted({each for each in racks if each is not None})}
    added: list[str | None] = []
    for _ in range(count):
        rack = min(sizes, key=lambda each: sizes[each], default=None)
        if rack is not None:
            sizes[rack] += 1
        added.append(rack)
    first = int(brokers.ids.max(initial=0)) + 1
    if first + count - 1 > _LARGEST_ID:
        raise UnclearQuestionError(f"no id is free above {first - 1}, the largest one of the cluster")
    ids = tuple(range(first, first + count))

    def extend(known: NDArray[Any]) -> NDArray[Any]:
        numbers = known[~np.isnan(known)]
        return np.append(known, np.full(count, np.median(numbers) if len(numbers) else np.nan))

    return Supposed(
        snapshot=replace(
            snapshot,
            brokers=Brokers(
                ids=np.append(brokers.ids, np.array(ids, dtype=np.int32)),
                racks=(*racks, *added),
                capacity_disk_bytes=extend(brokers.capacity_disk_bytes),
                capacity_in_bytes_per_second=extend(brokers.capacity_in_bytes_per_second),
                capacity_out_bytes_per_second=extend(brokers.capacity_out_bytes_per_second),
                takes_replicas=np.append(brokers.takes_replicas, np.ones(count, np.bool_)),
                is_live=np.append(brokers.is_live, np.ones(count, np.bool_)),
            ),
        ),
        added=ids,
        lines=(
            "added: " + list_some(f"{broker} (rack {rack or 'none'})" for broker, rack in zip(ids, added, strict=True)),
        ),
    )


def _describe(snapshot: LoadSnapshot, which: NDArray[np.bool_]) -> str:
    at = np.flatnonzero(which)
    names = list_some(snapshot.partitions.name(int(each)) for each in at[:6]) if len(at) <= 6 else ""
    if len(at) > 6:
        names = f"{', '.join(snapshot.partitions.name(int(each)) for each in at[:5])}, ..."
    return f"{format_count(len(at), 'partition')}{f' ({names})' if names else ''}"
