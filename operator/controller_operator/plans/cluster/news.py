"""The Kubernetes events about changes of a cluster, and their rate limit.

Events follow from the difference between two pictures of a cluster: the last reported one and the present one. So
nothing is reported twice, a broker that was away for a moment is no news, and each report has one event of each kind at
most. A quiet cluster is reported on at once. While there is news each time, the pauses between reports grow, so that a
thousand brokers that come and go all day make a few events an hour.
Each kind of warning has pauses of its own, half a minute at most. A warning compares with the best picture since the
last warning of its kind, so a broker that crashes repeatedly is reported each time, even if its return never was.
After a restart the picture in the KafkaCluster's status counts as the last reported one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerEpoch, BrokerId, TopicPartition
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot
from controller_core.model.wording import MOST_NAMED, format_count, name_subject
from controller_operator.plans.outcome import Notice
from controller_operator.resources.cluster import BrokerState, BrokerStatus, KafkaClusterStatus


class Sort(StrEnum):
    """A kind of news, with pauses of its own."""

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
    """The parts of a cluster that events are about."""

    controller: Controller | None
    """The last known controller, because there is none for a moment between two terms."""
    brokers: Mapping[BrokerId, BrokerEpoch]
    lost: int
    """Partitions that have lost their leader and have no new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The time for which news of one kind waits."""

    until: datetime
    length: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The last report on a cluster, and the pauses until the next one."""

    picture: Picture
    live: frozenset[BrokerId]
    """The brokers that were registered at any time since the last warning about brokers."""
    least_lost: int
    """The lowest number of partitions without a leader since the last warning about partitions."""
    pauses: Mapping[Sort, Pause] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The news to report now."""

    told: Told
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None
    """Seconds until news that has to wait may be reported; None if there is none."""


def find_news(told: Told | None, status: KafkaClusterStatus, view: Snapshot, now: datetime) -> News:
    """Return the news to report. `told` is the result of the last call; None after a restart."""
    if told is None:
        picture = _picture_in(status, view)
        told = Told(picture=picture, live=frozenset(picture.brokers), least_lost=picture.lost)
    after = _picture_of(view, told.picture.controller)
    told = replace(told, live=told.live | after.brokers.keys(), least_lost=min(told.least_lost, after.lost))
    notices: list[Notice] = []
    waits: list[timedelta] = []
    for sort, found in _find_news(told, after, view, str(now)).items():
        wait = _wait(sort, told.pauses.get(sort), now)
        if found and wait:
            waits.append(wait)
        elif found:
            notices += found
            pauses = {**told.pauses, sort: _next_pause(sort, told.pauses.get(sort), now)}
            told = replace(_mark_told(sort, told, after), pauses=pauses)
    look_again_in_s = min(waits).total_seconds() if waits else None
    return News(told=told, notices=tuple(notices), look_again_in_s=look_again_in_s)


def _wait(sort: Sort, pause: Pause | None, now: datetime) -> timedelta:
    """Return how long news must wait. A pause far ahead was set by another clock, and counts as over."""
    left = timedelta() if pause is None else pause.until - now
    return left if timedelta() < left <= _PAUSES[sort][1] else timedelta()


def _next_pause(sort: Sort, last: Pause | None, now: datetime) -> Pause:
    first, longest = _PAUSES[sort]
    # The difference is absolute because a clock that was set back makes the last pause lie in the future.
    is_restless = last is not None and abs(last.until - now) <= max(last.length, _REST)
    length = min(2 * last.length, longest) if last is not None and is_restless else first
    return Pause(until=now + length, length=length)


def _mark_told(sort: Sort, told: Told, after: Picture) -> Told:
    """Return the report, with the news of one kind added.

    A broker that was reported as gone leaves the picture, so that its return is news. A broker whose loss was not
    reported yet stays in it."""
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


def _picture_of(view: Snapshot, last_controller: Controller | None) -> Picture:
    return Picture(
        controller=view.controller or last_controller,
        brokers={broker.id: broker.epoch for broker in view.brokers.values()},
        lost=view.counts.lost_leader,
    )


def _picture_in(status: KafkaClusterStatus, view: Snapshot) -> Picture:
    """Return the picture that the status shows. Everything else is as in the view, so that it makes no news."""
    now = _picture_of(view, None)
    if status.counts is None:
        return now
    seen = status.controller
    controller = Controller(id=seen.id, epoch=seen.epoch, kind=ControllerKind(seen.kind.value)) if seen else None
    is_complete = len(_list_registered(status)) == status.counts.brokers
    return Picture(
        controller=controller or now.controller,
        brokers=_epochs_in(status, now) if is_complete else now.brokers,
        lost=min(status.counts.offline, now.lost),
    )


def _epochs_in(status: KafkaClusterStatus, now: Picture) -> dict[BrokerId, BrokerEpoch]:
    """Return the epochs in the status. A missing epoch is taken from the present picture, so that it makes no news."""
    return {
        each.id: each.epoch if each.epoch is not None else now.brokers.get(each.id, BrokerEpoch(-1))
        for each in _list_registered(status)
    }


def _list_registered(status: KafkaClusterStatus) -> list[BrokerStatus]:
    return [each for each in status.brokers if each.state is BrokerState.REGISTERED]


def _find_news(told: Told, after: Picture, view: Snapshot, occurrence: str) -> dict[Sort, list[Notice]]:
    """Return the news of each kind, with one event of each reason at most."""
    return {
        Sort.BROKERS_GONE: list(_brokers_gone(told, after, occurrence)),
        Sort.PARTITIONS_OFFLINE: list(_partitions_offline(told, after, view, occurrence)),
        Sort.OTHER: list(_other_changes(told.picture, after, occurrence)),
    }


def _brokers_gone(told: Told, after: Picture, occurrence: str) -> Iterator[Notice]:
    if gone := sorted(told.live - after.brokers.keys()):
        message = f"{_describe_brokers(gone)} no longer registered"
        yield Notice(reason="BrokersGone", message=message, is_warning=True, occurrence=occurrence)


def _partitions_offline(told: Told, after: Picture, view: Snapshot, occurrence: str) -> Iterator[Notice]:
    if after.lost > told.least_lost:
        named = [str(partition) for partition in islice(_find_lost_partitions(view), MOST_NAMED)]
        more = f" and {after.lost - len(named)} more" if after.lost > len(named) else ""
        message = f"{format_count(after.lost, 'partition')} without a leader: {', '.join(named)}{more}"
        yield Notice(reason="PartitionsOffline", message=message, is_warning=True, occurrence=occurrence)


def _other_changes(before: Picture, after: Picture, occurrence: str) -> Iterator[Notice]:
    def notice(reason: str, message: str) -> Notice:
        return Notice(reason=reason, message=message, occurrence=occurrence)

    if after.controller is not None and after.controller != before.controller:
        was = f"; before it {_name_controller(before.controller)}" if before.controller else ""
        yield notice("ControllerMoved", f"the controller is {_name_controller(after.controller)}{was}")
    if new := sorted(after.brokers.keys() - before.brokers.keys()):
        yield notice("BrokersCame", f"{_describe_brokers(new)} registered now")
    both = before.brokers.keys() & after.brokers.keys()
    if again := sorted(each for each in both if before.brokers[each] != after.brokers[each]):
        yield notice("BrokersRestarted", f"{_describe_brokers(again)} registered again")
    if before.lost and not after.lost:
        yield notice("PartitionsOnline", f"{format_count(before.lost, 'partition')} without a leader have one again")


def _find_lost_partitions(view: Snapshot) -> Iterator[TopicPartition]:
    for topic in view.topics.values():
        if topic.counts.lost_leader:
            for number, state in topic.states.items():
                if state.leader_and_isr.leader == NO_LEADER:
                    yield TopicPartition(topic.name, number)


def _name_controller(controller: Controller) -> str:
    return f"{controller.id} ({controller.kind}) in epoch {controller.epoch}"


def _describe_brokers(ids: Iterable[BrokerId]) -> str:
    return name_subject("broker", list(ids))
