"""What has been heard of a cluster so far, and the views made from it.

A topic whose partitions and configuration are as before is the same object in the next view. What is versions of znodes
with ZooKeeper is the end of the metadata log at which the change was seen: it rises over restarts of the operator, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, FeatureRange, ReplicaAssignment, TopicAssignment
from controller_core.zk.session import ZkVersion
from controller_operator.kafka.cluster_view import (
    Abilities,
    ClusterView,
    Controller,
    Counts,
    TopicView,
    configured_min_isr,
)
from controller_operator.observation.polling.answers import Move, Topic, TopicConfig, assignment_of

ABILITIES: Final = Abilities(chooses_topic_ids=False, limits_moves=False, validates_features=True)
"""What a cluster without ZooKeeper offers."""
_UNKNOWN: Final = TopicConfig({}, "")


class KnownCluster:
    """One cluster, as its brokers said it."""

    def __init__(self) -> None:
        self._cluster_id: str | None = None
        self._controller: Controller | None = None
        self._brokers: dict[BrokerId, Broker] = {}
        self._features: FinalizedFeatures | None = None
        self._topics: Mapping[TopicName, Topic] = {}
        self._moves: Mapping[TopicPartition, Move] = {}
        self._configs: dict[TopicName, TopicConfig] = {}
        self._views: dict[TopicName, TopicView] = {}
        self._counts = Counts()
        self._changed: set[TopicName] = set()
        self._is_new = True

    @property
    def topics(self) -> Mapping[TopicName, Topic]:
        return self._topics

    @property
    def moves(self) -> Mapping[TopicPartition, Move]:
        return self._moves

    @property
    def brokers(self) -> Mapping[BrokerId, Broker]:
        return self._brokers

    def take_cluster(self, cluster_id: str | None, controller: Controller | None) -> None:
        """Takes in which cluster it is, and who leads its controllers."""
        self._is_new |= (cluster_id, controller) != (self._cluster_id, self._controller)
        self._cluster_id, self._controller = cluster_id, controller

    def take_brokers(
        self, brokers: Mapping[BrokerId, Broker], supported: Mapping[BrokerId, Mapping[str, FeatureRange]]
    ) -> None:
        """Takes in the live brokers, and what they support."""
        found = {number: replace(each, features=supported.get(number, {})) for number, each in brokers.items()}
        self._is_new |= found != self._brokers
        self._brokers = found

    def take_features(self, features: FinalizedFeatures) -> None:
        """Takes in the finalized features; their epoch rises all the time, and changes only with them."""
        if self._features is None or self._features.features != features.features:
            self._features, self._is_new = features, True

    def take_topics(
        self, topics: Mapping[TopicName, Topic], moves: Mapping[TopicPartition, Move], position: int
    ) -> None:
        """Takes in all topics, and which partitions move; `position` is the end of the log that was looked at."""
        moving = {partition.topic for partition in (*moves, *self._moves)}
        before, self._topics, self._moves = self._topics, topics, moves
        if topics is before and not moving:
            return
        for gone in before.keys() - topics.keys():
            self._configs.pop(gone, None)
            self._renew(gone, position)
        for name in before.keys() & topics.keys():
            if before[name].topic_id != topics[name].topic_id:
                self._configs.pop(name, None)
        for name, topic in topics.items():
            if name in moving or before.get(name) != topic:
                self._renew(name, position)

    def take_configs(self, configs: Mapping[TopicName, TopicConfig], position: int) -> None:
        """Takes in the configurations of some topics."""
        for name, config in configs.items():
            if name in self._topics and self._configs.get(name) != config:
                self._configs[name] = config
                self._renew(name, position)

    def without_configs(self) -> Iterable[TopicName]:
        """The topics of whose configuration nothing is known, as of new ones."""
        return [name for name in self._topics if name not in self._configs]

    def view(self, version: int) -> ClusterView | None:
        """The view of what was taken in so far; None where it would say the same as the last one."""
        if not self._is_new and not self._changed:
            return None
        changed, self._changed, self._is_new = frozenset(self._changed), set(), False
        return ClusterView(
            version=version,
            cluster_id=self._cluster_id,
            controller=self._controller,
            brokers=self._brokers,
            topics=dict(self._views),
            features=self._features,
            changed=changed,
            known_counts=self._counts,
            abilities=ABILITIES,
        )

    def _renew(self, name: TopicName, position: int) -> None:
        before = self._views.get(name)
        topic = self._topics.get(name)
        after = self._topic_view(name, topic, before, position) if topic is not None else None
        if after is before or (after is None and before is None):
            return
        self._counts += (after.counts if after else Counts()) - (before.counts if before else Counts())
        self._changed.add(name)
        if after is None:
            del self._views[name]
        else:
            self._views[name] = after

    def _topic_view(self, name: TopicName, topic: Topic, before: TopicView | None, position: int) -> TopicView:
        config = self._configs.get(name, _UNKNOWN)
        view = TopicView(
            name=name,
            assignment=TopicAssignment(topic_id=topic.topic_id, partitions=self._assignments(name, topic)),
            version=before.version if before else ZkVersion(position),
            config=config.own,
            config_version=before.config_version if before else ZkVersion(position),
            states={number: each.state for number, each in topic.partitions.items()},
            default_min_isr=configured_min_isr({"min.insync.replicas": config.min_isr}, 1),
        )
        if before is None or view == before:
            return before or view
        is_other_config = view.config != before.config
        is_other = view.assignment != before.assignment
        return replace(
            view,
            version=ZkVersion(position) if is_other else before.version,
            config_version=ZkVersion(position) if is_other_config else before.config_version,
        )

    def _assignments(self, name: TopicName, topic: Topic) -> dict[PartitionId, ReplicaAssignment]:
        return {
            number: assignment_of(each, self._moves.get(TopicPartition(name, number)))
            for number, each in topic.partitions.items()
        }
