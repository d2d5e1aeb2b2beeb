"""The views of a cluster without ZooKeeper, made of its brokers' answers.

A topic with unchanged partitions and configuration is the same object in the next view. In place of the versions of
znodes, a topic has the end of the metadata log at which its change was seen.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controller_operator.observation.topic_views import TopicViews

from controller_core.client.configs import MIN_INSYNC_REPLICAS
from controller_core.model.ids import TopicName, TopicVersion
from controller_core.model.metadata import TopicAssignment
from controller_core.model.snapshot import (
    Abilities,
    Controller,
    ControllerKind,
    Snapshot,
    TopicSnapshot,
    read_min_isr,
)
from controller_core.polling.known_cluster import KnownCluster

ABILITIES: Final = Abilities(chooses_topic_ids=False, validates_features=True, may_hide_topics=True)
"""The abilities of a cluster without ZooKeeper."""


class Views:
    """The views of one cluster."""

    def __init__(self, known: KnownCluster) -> None:
        self._known = known
        self._topics = TopicViews()

    def make_next_view(self, version: int) -> Snapshot | None:
        """Return a view of everything known; None if it would equal the last one."""
        known = self._known
        if not known.has_news:
            return None
        changed = frozenset(self._renew_all(known.take_news()))
        return Snapshot(
            version=version,
            cluster_id=known.cluster_id,
            controller=_controller(known),
            brokers=known.brokers,
            cordoned=known.cordoned,
            topics=self._topics.copy(),
            features=known.features,
            voters=known.voters,
            changed=changed,
            known_counts=self._topics.counts,
            known_holders=self._topics.holders,
            abilities=ABILITIES,
        )

    def _renew_all(self, news: Mapping[TopicName, int]) -> list[TopicName]:
        return [name for name, position in news.items() if self._renew(name, TopicVersion(position))]

    def _renew(self, name: TopicName, position: TopicVersion) -> bool:
        before = self._topics.get(name)
        return self._topics.take(name, self._topic_view(name, before, position) if name in self._known.topics else None)

    def _topic_view(self, name: TopicName, before: TopicSnapshot | None, position: TopicVersion) -> TopicSnapshot:
        topic, config = self._known.topics[name], self._known.find_config(name)
        view = TopicSnapshot(
            name=name,
            assignment=TopicAssignment(topic_id=topic.topic_id, partitions=self._known.list_assignments(name)),
            version=before.version if before else position,
            config=config.own,
            is_config_known=config.is_told,
            config_version=before.config_version if before else position,
            states={number: each.state for number, each in topic.partitions.items()},
            default_min_isr=read_min_isr({MIN_INSYNC_REPLICAS: config.min_isr}, 1),
        )
        if before is None or view == before:
            return before or view
        is_other_config = view.config != before.config
        is_other = view.assignment != before.assignment
        return replace(
            view,
            version=position if is_other else before.version,
            config_version=position if is_other_config else before.config_version,
        )


def _controller(known: KnownCluster) -> Controller | None:
    if known.active is None:
        return None
    return Controller(id=known.active.id, epoch=known.active.epoch, kind=ControllerKind.KRAFT)
