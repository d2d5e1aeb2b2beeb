"""The state of a cluster as heard so far, and the snapshots that are made of it.

An unchanged topic stays the same object. The time of a change is the end of the metadata log at which it was seen,
because that also rises over restarts of the reader."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition, TopicVersion
from controller_core.model.metadata import Broker, ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import (
    WITHOUT_ZOOKEEPER,
    Controller,
    KnownTopics,
    Snapshot,
    TopicSnapshot,
    read_min_isr,
)
from controller_core.model.topics.config_keys import MIN_INSYNC_REPLICAS
from controller_core.polling.answers import NOTHING_SET, Moves, Topic, TopicConfig, make_assignment
from controller_core.polling.self_descriptions import SelfDescription


class KnownCluster:
    """One cluster, as its brokers reported it."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller: Controller | None = None
        """The leader of the controllers, or None."""
        self.voters: tuple[BrokerId, ...] = ()
        """The voters of the quorum, as far as they were ever reported."""
        self.brokers: Mapping[BrokerId, Broker] = {}
        self.cordoned: frozenset[BrokerId] = frozenset()
        """Brokers that take no new replicas."""
        self.features: FinalizedFeatures | None = None
        self.topics: Mapping[TopicName, Topic] = {}
        self.moves: Moves = {}
        self._configs: dict[TopicName, TopicConfig] = {}
        self._changed: dict[TopicName, TopicVersion] = {}
        self._is_new = True
        self._snapshots = 0
        self._known_topics = KnownTopics()
        """The topics of the last snapshot."""

    @property
    def has_news(self) -> bool:
        """True if the next snapshot differs from the last one."""
        return self._is_new or bool(self._changed)

    def take_snapshot(self) -> Snapshot:
        """Return everything that is known as a snapshot. Topics without changes are the same objects as in the last
        one."""
        news, self._changed, self._is_new = self._changed, {}, False
        changed = frozenset(name for name, position in news.items() if self._renew(name, position))
        self._snapshots += 1
        return Snapshot(
            version=self._snapshots,
            cluster_id=self.cluster_id,
            controller=self.controller,
            brokers=self.brokers,
            cordoned=self.cordoned,
            topics=self._known_topics.copy(),
            features=self.features,
            voters=self.voters,
            changed=changed,
            known_counts=self._known_topics.counts,
            known_holders=self._known_topics.holders,
            abilities=WITHOUT_ZOOKEEPER,
        )

    def _renew(self, name: TopicName, position: TopicVersion) -> bool:
        """Take in the new state of a topic. Return True if it differs from the last snapshot."""
        before = self._known_topics.get(name)
        after = self._make_topic(name, before, position) if name in self.topics else None
        return self._known_topics.take(name, after)

    def _make_topic(self, name: TopicName, before: TopicSnapshot | None, position: TopicVersion) -> TopicSnapshot:
        topic, config = self.topics[name], self.find_config(name)
        found = TopicSnapshot(
            name=name,
            assignment=TopicAssignment(topic_id=topic.topic_id, partitions=self._list_assignments(name)),
            version=before.version if before else position,
            config=config.own,
            is_config_known=config.is_told,
            config_version=before.config_version if before else position,
            states={number: each.state for number, each in topic.partitions.items()},
            default_min_isr=read_min_isr({MIN_INSYNC_REPLICAS: config.min_isr}, 1),
        )
        if before is None or found == before:
            return found
        return replace(
            found,
            version=before.version if found.assignment == before.assignment else position,
            config_version=before.config_version if found.config == before.config else position,
        )

    def _list_assignments(self, name: TopicName) -> dict[PartitionId, ReplicaAssignment]:
        """Return the replicas of a topic's partitions, with those that are being added and removed."""
        return {
            number: make_assignment(each, self.moves.get(TopicPartition(name, number)))
            for number, each in self.topics[name].partitions.items()
        }

    def find_config(self, name: TopicName) -> TopicConfig:
        """Return the configuration of a topic; an empty one if none is known."""
        return self._configs.get(name, NOTHING_SET)

    def find_topics_without_configs(self) -> Iterable[TopicName]:
        """Return the topics without a known configuration, such as new ones."""
        return [name for name in self.topics if name not in self._configs]

    def take_cluster(
        self, cluster_id: str | None, controller: Controller | None, voters: tuple[BrokerId, ...] = ()
    ) -> None:
        """Store the cluster's id, the leader of its controllers, and, if known, the voters."""
        self._is_new |= bool(voters) and voters != self.voters
        self.voters = voters or self.voters
        self._is_new |= (cluster_id, controller) != (self.cluster_id, self.controller)
        self.cluster_id, self.controller = cluster_id, controller

    def take_brokers(
        self, brokers: Mapping[BrokerId, Broker], descriptions: Mapping[BrokerId, SelfDescription]
    ) -> None:
        """Store the live brokers, and their self-descriptions."""
        said = {number: descriptions.get(number, SelfDescription()) for number in brokers}
        found = {number: replace(each, features=said[number].features) for number, each in brokers.items()}
        cordoned = frozenset(number for number, each in said.items() if each.is_cordoned)
        self._is_new |= (found, cordoned) != (self.brokers, self.cordoned)
        self.brokers, self.cordoned = found, cordoned

    def take_features(self, features: FinalizedFeatures) -> None:
        """Store the finalized features if they changed. Their epoch alone rises all the time, and is not news."""
        if self.features is None or self.features.features != features.features:
            self.features, self._is_new = features, True

    def take_topics(self, topics: Mapping[TopicName, Topic], moves: Moves, position: int) -> None:
        """Store all topics and moves. `position`: the end of the log at the time of the poll."""
        moving = {partition.topic for partition in (*moves, *self.moves)}
        before, self.topics, self.moves = self.topics, topics, moves
        # Comparing all topics is expensive. The same object means that nothing has changed.
        if topics is before and not moving:
            return
        for gone in before.keys() - topics.keys():
            self._configs.pop(gone, None)
            self._changed[gone] = TopicVersion(position)
        for name in before.keys() & topics.keys():
            if before[name].topic_id != topics[name].topic_id:
                self._configs.pop(name, None)
        for name, topic in topics.items():
            if name in moving or before.get(name) != topic:
                self._changed[name] = TopicVersion(position)

    def take_configs(self, configs: Mapping[TopicName, TopicConfig], position: int) -> None:
        """Store the configurations of some topics."""
        for name, config in configs.items():
            if name in self.topics and self._configs.get(name) != config:
                self._configs[name] = config
                self._changed[name] = TopicVersion(position)
