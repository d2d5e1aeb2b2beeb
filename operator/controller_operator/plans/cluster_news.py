"""What has happened to a cluster since it was last told of, as Kubernetes events, and when to tell of it.

Events follow from two pictures of a cluster: the one that was told of last, and the one of now. So nothing is told twice, a
broker that was away for a moment and is back is no news, and however much happens at once makes one event of each kind. A
cluster that was quiet is told of at once; then more and more time passes between two tellings as long as there is news each
time, so that a thousand brokers that come and go all day make a few events an hour.

After a restart the picture in the KafkaCluster's status is the one that was told of last.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerEpoch, BrokerId, TopicPartition
from controller_core.model.wording import MOST_NAMED, counted, listed
from controller_operator.kafka.cluster_view import ClusterView, Controller, ControllerKind
from controller_operator.plans.outcome import Notice
from controller_operator.resources.cluster import KafkaClusterStatus

_FIRST_PAUSE: Final = timedelta(seconds=30)
_LONGEST_PAUSE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A cluster, as far as there are events about it."""

    controller: Controller | None
    """The last one that there was: between two terms there is none for a moment."""
    brokers: Mapping[BrokerId, BrokerEpoch]
    lost: int
    """Partitions that have no leader and had one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told of a cluster, and when there may be more."""

    picture: Picture
    quiet_until: datetime | None = None
    pause: timedelta = field(default=_FIRST_PAUSE)


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
        told = Told(picture=_picture_in(status, view))
    notices = tuple(_changes(told.picture, view, str(now)))
    if not notices:
        return News(told=told)
    left = timedelta() if told.quiet_until is None else told.quiet_until - now
    if timedelta() < left <= _LONGEST_PAUSE:
        return News(told=told, look_again_in_s=left.total_seconds())
    # Far from it on either side: it was quiet for long, or the clock was set back.
    is_restless = told.quiet_until is not None and abs(left) <= told.pause
    pause = min(2 * told.pause, _LONGEST_PAUSE) if is_restless else _FIRST_PAUSE
    picture = _picture_of(view, told.picture.controller)
    return News(told=Told(picture=picture, quiet_until=now + pause, pause=pause), notices=notices)


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
    is_complete = len(status.brokers) == status.counts.brokers
    return Picture(
        controller=controller or now.controller,
        brokers=_epochs_in(status, now) if is_complete else now.brokers,
        lost=min(status.counts.offline, now.lost),
    )


def _epochs_in(status: KafkaClusterStatus, now: Picture) -> dict[BrokerId, BrokerEpoch]:
    """Where no epoch is shown there is no news of it."""
    return {
        each.id: each.epoch if each.epoch is not None else now.brokers.get(each.id, BrokerEpoch(-1))
        for each in status.brokers
    }


def _changes(before: Picture, view: ClusterView, occurrence: str) -> Iterator[Notice]:
    """One event at most of each kind."""

    def notice(reason: str, message: str, *, is_warning: bool = False) -> Notice:
        return Notice(reason=reason, message=message, is_warning=is_warning, occurrence=occurrence)

    after = _picture_of(view, before.controller)
    if after.controller is not None and after.controller != before.controller:
        was = f"; before it {_named(before.controller)}" if before.controller else ""
        yield notice("ControllerMoved", f"the controller is {_named(after.controller)}{was}")
    if gone := sorted(before.brokers.keys() - after.brokers.keys()):
        yield notice("BrokersGone", f"{_brokers(gone)} not registered any more", is_warning=True)
    if new := sorted(after.brokers.keys() - before.brokers.keys()):
        yield notice("BrokersCame", f"{_brokers(new)} registered now")
    both = before.brokers.keys() & after.brokers.keys()
    if again := sorted(each for each in both if before.brokers[each] != after.brokers[each]):
        yield notice("BrokersRestarted", f"{_brokers(again)} registered anew")
    if after.lost > before.lost:
        named = [str(partition) for partition in islice(_lost_partitions(view), MOST_NAMED)]
        more = f" and {after.lost - len(named)} more" if after.lost > len(named) else ""
        message = f"{counted(after.lost, 'partition')} without a leader: {', '.join(named)}{more}"
        yield notice("PartitionsOffline", message, is_warning=True)
    elif before.lost and not after.lost:
        yield notice("PartitionsOnline", f"{counted(before.lost, 'partition')} without a leader have one again")


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
    return f"{'broker' if len(every) == 1 else 'brokers'} {listed(every)} {'is' if len(every) == 1 else 'are'}"
