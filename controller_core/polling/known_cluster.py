"""The state of a cluster as heard so far, and the news that nobody has taken yet.

An unchanged topic stays the same object. The time of a change is the end of the metadata log at which it was seen,
because that also rises over restarts of the reader."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, ReplicaAssignment
from controller_core.polling.answers import NOTHING_SET, Active, Move, Topic, TopicConfig, make_assignment
from controller_core.polling.self_descriptions import SelfDescription


class KnownCluster:
    """One cluster, as its brokers reported it."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.active: Active | None = None
        """The leader of the controllers, or None."""
        self.voters: tuple[BrokerId, ...] = ()
        """The voters of the quorum, as far as they were ever reported."""
        self.brokers: Mapping[BrokerId, Broker] = {}
        self.cordoned: frozenset[BrokerId] = frozenset()
        """Brokers that take no new replicas."""
        self.features: FinalizedFeatures | None = None
        self.topics: Mapping[TopicName, Topic] = {}
        self.moves: Mapping[TopicPartition, Move] = {}
        self._configs: dict[TopicName, TopicConfig] = {}
        self._changed: dict[TopicName, int] = {}
        self._is_new = True

    @property
    def has_news(self) -> bool:
        return self._is_new or bool(self._changed)

    def take_news(self) -> Mapping[TopicName, int]:
        """Return the topics that are new, gone or changed since the last call, with the end of the log at which that
        was seen."""
        changed, self._changed, self._is_new = self._changed, {}, False
        return changed

    def find_config(self, name: TopicName) -> TopicConfig:
        """Return the configuration of a topic; an empty one if none is known."""
        return self._configs.get(name, NOTHING_SET)

    def list_assignments(self, name: TopicName) -> dict[PartitionId, ReplicaAssignment]:
        """Return the replicas of a topic's partitions, with those that are being added and removed."""
        return {
            number: make_assignment(each, self.moves.get(TopicPartition(name, number)))
            for number, each in self.topics[name].partitions.items()
        }

    def find_topics_without_configs(self) -> Iterable[TopicName]:
        """Return the topics without a known configuration, such as new ones."""
        return [name for name in self.topics if name not in self._configs]

    def take_cluster(self, cluster_id: str | None, active: Active | None, voters: tuple[BrokerId, ...] = ()) -> None:
        """Store the cluster's id, the leader of its controllers, and, if known, the voters."""
        self._is_new |= bool(voters) and voters != self.voters
        self.voters = voters or self.voters
        self._is_new |= (cluster_id, active) != (self.cluster_id, self.active)
        self.cluster_id, self.active = cluster_id, active

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

    def take_topics(
        self, topics: Mapping[TopicName, Topic], moves: Mapping[TopicPartition, Move], position: int
    ) -> None:
        """Store all topics and moves. `position`: the end of the log at the time of the poll."""
        moving = {partition.topic for partition in (*moves, *self.moves)}
        before, self.topics, self.moves = self.topics, topics, moves
        # Comparing all topics is expensive. The same object means that nothing has changed.
        if topics is before and not moving:
            return
        for gone in before.keys() - topics.keys():
            self._configs.pop(gone, None)
            self._changed[gone] = position
        for name in before.keys() & topics.keys():
            if before[name].topic_id != topics[name].topic_id:
                self._configs.pop(name, None)
        for name, topic in topics.items():
            if name in moving or before.get(name) != topic:
                self._changed[name] = position

    def take_configs(self, configs: Mapping[TopicName, TopicConfig], position: int) -> None:
        """Store the configurations of some topics."""
        for name, config in configs.items():
            if name in self.topics and self._configs.get(name) != config:
                self._configs[name] = config
                self._changed[name] = position
