"""What has happened to a cluster since it was last told of, as Kubernetes events, and when to tell of it.

Events follow from two pictures of a cluster: the one that was told of last, and the one of now. So nothing is told twice, a
broker that was away for a moment and is back is no news, and however much happens at once makes one event of each kind. A
cluster that was quiet is told of at once; then more and more time passes between two tellings as long as there is news each
time, so that a thousand brokers that come and go all day make a few events an hour.

A warning waits for no other news: each kind of warning has pauses of its own, half a minute at most. A warning is about
what is worse than in the best picture since the last one of its kind, so a broker that crashes again and again is told of
each time, although nobody was told that it came back.

After a restart the picture in the KafkaCluster's status is the one that was told of last.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerEpoch, BrokerId, TopicPartition
from controller_core.model.wording import MOST_NAMED, format_count, name_all
from controller_operator.kafka.cluster_view import ClusterView, Controller, ControllerKind
from controller_operator.plans.outcome import Notice
from controller_operator.resources.cluster import BrokerState, BrokerStatus, KafkaClusterStatus


class Sort(StrEnum):
    """A sort of news, with pauses of its own."""

    BROKERS_GONE = "brokers gone"
    PARTITIONS_OFFLINE = "partitions offline"
    OTHER = "other"


_WARNING_PAUSES: Final = (timedelta(seconds=1), timedelta(seconds=30))
_PAUSES: Final = {
    Sort.BROKERS_GONE: _WARNING_PAUSES,
    Sort.PARTITIONS_OFFLINE: _WARNING_PAUSES,
    Sort.OTHER: (timedelta(seconds=30), timedelta(minutes=10)),
}
"""The first pause after an event, and the longest."""
_REST: Final = timedelta(seconds=30)
"""Pauses become shorter again only after a rest of this length, or of the pause itself if that is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A cluster, as far as there are events about it."""

    controller: Controller | None
    """The last one that there was: between two terms there is none for a moment."""
    brokers: Mapping[BrokerId, BrokerEpoch]
    lost: int
    """Partitions that have no leader and had one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long nothing of one sort is told."""

    until: datetime
    length: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told of a cluster, and when there may be more."""

    picture: Picture
    live: frozenset[BrokerId]
    """The brokers that were registered since the last warning about brokers."""
    least_lost: int
    """The least partitions without a leader since the last warning about partitions."""
    pauses: Mapping[Sort, Pause] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What there is to tell now."""

    told: Told
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None
    """Where there is more to tell, but not yet."""


def news_of(told: Told | None, status: KafkaClusterStatus, view: ClusterView, now: datetime) -> News:
    """What to tell of a cluster now. `told` is what came of the last time; None after a restart."""
    if told is None:
        picture = _picture_in(status, view)
        told = Told(picture=picture, live=frozenset(picture.brokers), least_lost=picture.lost)
    after = _picture_of(view, told.picture.controller)
    told = replace(told, live=told.live | after.brokers.keys(), least_lost=min(told.least_lost, after.lost))
    notices: list[Notice] = []
    waits: list[timedelta] = []
    for sort, found in _news(told, after, view, str(now)).items():
        wait = _wait(sort, told.pauses.get(sort), now)
        if found and wait:
            waits.append(wait)
        elif found:
            notices += found
            pauses = {**told.pauses, sort: _next_pause(sort, told.pauses.get(sort), now)}
            told = replace(_having_told(sort, told, after), pauses=pauses)
    look_again_in_s = min(waits).total_seconds() if waits else None
    return News(told=told, notices=tuple(notices), look_again_in_s=look_again_in_s)


def _wait(sort: Sort, pause: Pause | None, now: datetime) -> timedelta:
    """Return how long news must wait. A pause far ahead was set by another clock, and counts as over."""
    left = timedelta() if pause is None else pause.until - now
    return left if timedelta() < left <= _PAUSES[sort][1] else timedelta()


def _next_pause(sort: Sort, last: Pause | None, now: datetime) -> Pause:
    first, longest = _PAUSES[sort]
    is_restless = last is not None and abs(last.until - now) <= max(last.length, _REST)
    length = min(2 * last.length, longest) if last is not None and is_restless else first
    return Pause(until=now + length, length=length)


def _having_told(sort: Sort, told: Told, after: Picture) -> Told:
    """Return what was told, with the news of one sort.

    A broker that was told to be gone leaves the picture, so that its return is news. One that has gone and was not told
    yet stays in it."""
    picture = told.picture
    match sort:
        case Sort.BROKERS_GONE:
            brokers = {each: epoch for each, epoch in picture.brokers.items() if each in after.brokers}
            return replace(told, live=frozenset(after.brokers), picture=replace(picture, brokers=brokers))
        case Sort.PARTITIONS_OFFLINE:
            return replace(told, least_lost=after.lost, picture=replace(picture, lost=after.lost))
        case Sort.OTHER:
            brokers, lost = {**picture.brokers, **after.brokers}, min(picture.lost, after.lost)
            return replace(told, picture=Picture(controller=after.controller, brokers=brokers, lost=lost))


def _picture_of(view: ClusterView, last_controller: Controller | None) -> Picture:
    return Picture(
        controller=view.controller or last_controller,
        brokers={broker.id: broker.epoch for broker in view.brokers.values()},
        lost=view.counts.lost_leader,
    )


def _picture_in(status: KafkaClusterStatus, view: ClusterView) -> Picture:
    """What the status shows; of what it does not show there is no news."""
    now = _picture_of(view, None)
    if status.counts is None:
        return now
    seen = status.controller
    controller = Controller(id=seen.id, epoch=seen.epoch, kind=ControllerKind(seen.kind.value)) if seen else None
    is_complete = len(_registered(status)) == status.counts.brokers
    return Picture(
        controller=controller or now.controller,
        brokers=_epochs_in(status, now) if is_complete else now.brokers,
        lost=min(status.counts.offline, now.lost),
    )


def _epochs_in(status: KafkaClusterStatus, now: Picture) -> dict[BrokerId, BrokerEpoch]:
    """Where no epoch is shown there is no news of it."""
    return {
        each.id: each.epoch if each.epoch is not None else now.brokers.get(each.id, BrokerEpoch(-1))
        for each in _registered(status)
    }


def _registered(status: KafkaClusterStatus) -> list[BrokerStatus]:
    return [each for each in status.brokers if each.state is BrokerState.REGISTERED]


def _news(told: Told, after: Picture, view: ClusterView, occurrence: str) -> dict[Sort, list[Notice]]:
    """Return what is new by its sort, with one event at most of each kind."""
    return {
        Sort.BROKERS_GONE: list(_brokers_gone(told, after, occurrence)),
        Sort.PARTITIONS_OFFLINE: list(_partitions_offline(told, after, view, occurrence)),
        Sort.OTHER: list(_other_changes(told.picture, after, occurrence)),
    }


def _brokers_gone(told: Told, after: Picture, occurrence: str) -> Iterator[Notice]:
    if gone := sorted(told.live - after.brokers.keys()):
        message = f"{_brokers(gone)} not registered any more"
        yield Notice(reason="BrokersGone", message=message, is_warning=True, occurrence=occurrence)


def _partitions_offline(told: Told, after: Picture, view: ClusterView, occurrence: str) -> Iterator[Notice]:
    if after.lost > told.least_lost:
        named = [str(partition) for partition in islice(_lost_partitions(view), MOST_NAMED)]
        more = f" and {after.lost - len(named)} more" if after.lost > len(named) else ""
        message = f"{format_count(after.lost, 'partition')} without a leader: {', '.join(named)}{more}"
        yield Notice(reason="PartitionsOffline", message=message, is_warning=True, occurrence=occurrence)


def _other_changes(before: Picture, after: Picture, occurrence: str) -> Iterator[Notice]:
    def notice(reason: str, message: str) -> Notice:
        return Notice(reason=reason, message=message, occurrence=occurrence)

    if after.controller is not None and after.controller != before.controller:
        was = f"; before it {_named(before.controller)}" if before.controller else ""
        yield notice("ControllerMoved", f"the controller is {_named(after.controller)}{was}")
    if new := sorted(after.brokers.keys() - before.brokers.keys()):
        yield notice("BrokersCame", f"{_brokers(new)} registered now")
    both = before.brokers.keys() & after.brokers.keys()
    if again := sorted(each for each in both if before.brokers[each] != after.brokers[each]):
        yield notice("BrokersRestarted", f"{_brokers(again)} registered anew")
    if before.lost and not after.lost:
        yield notice("PartitionsOnline", f"{format_count(before.lost, 'partition')} without a leader have one again")


def _lost_partitions(view: ClusterView) -> Iterator[TopicPartition]:
    for topic in view.topics.values():
        if topic.counts.lost_leader:
            for number, state in topic.states.items():
                if state.leader_and_isr.leader == NO_LEADER:
                    yield TopicPartition(topic.name, number)


def _named(controller: Controller) -> str:
    return f"{controller.id} ({controller.kind}) in epoch {controller.epoch}"


def _brokers(ids: Iterable[BrokerId]) -> str:
    every = list(ids)
    return f"{name_all('broker', every)} {'is' if len(every) == 1 else 'are'}"
