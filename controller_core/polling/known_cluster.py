"""What has been heard of a cluster so far, and what of it nobody has taken as news yet.

A topic that is as before is the same object. When it changed is said by the end of the metadata log at which that was
seen: it rises over restarts of whoever asks, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, ReplicaAssignment
from controller_core.polling.answers import NOTHING_SET, Active, Move, Topic, TopicConfig, assignment_of
from controller_core.polling.self_descriptions import SelfDescription


class KnownCluster:
    """One cluster, as its brokers said it."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.active: Active | None = None
        """Who leads the controllers; None while nobody does."""
        self.voters: tuple[BrokerId, ...] = ()
        """Who elects that one, as far as it was ever said."""
        self.brokers: Mapping[BrokerId, Broker] = {}
        self.cordoned: frozenset[BrokerId] = frozenset()
        """Those that take no new replicas."""
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
        """The topics that are new, gone or others than when this was called last, and at which end of the log."""
        changed, self._changed, self._is_new = self._changed, {}, False
        return changed

    def config_of(self, name: TopicName) -> TopicConfig:
        """Nothing where none is known."""
        return self._configs.get(name, NOTHING_SET)

    def assignments_of(self, name: TopicName) -> dict[PartitionId, ReplicaAssignment]:
        """The replicas of a topic's partitions, with those that come and go."""
        return {
            number: assignment_of(each, self.moves.get(TopicPartition(name, number)))
            for number, each in self.topics[name].partitions.items()
        }

    def without_configs(self) -> Iterable[TopicName]:
        """The topics of whose configuration nothing is known, as of new ones."""
        return [name for name in self.topics if name not in self._configs]

    def take_cluster(self, cluster_id: str | None, active: Active | None, voters: tuple[BrokerId, ...] = ()) -> None:
        """Takes in which cluster it is, who leads its controllers, and, where it is known, who elects that one."""
        self._is_new |= bool(voters) and voters != self.voters
        self.voters = voters or self.voters
        self._is_new |= (cluster_id, active) != (self.cluster_id, self.active)
        self.cluster_id, self.active = cluster_id, active

    def take_brokers(
        self, brokers: Mapping[BrokerId, Broker], descriptions: Mapping[BrokerId, SelfDescription]
    ) -> None:
        """Takes in the live brokers, and what they say of themselves."""
        said = {number: descriptions.get(number, SelfDescription()) for number in brokers}
        found = {number: replace(each, features=said[number].features) for number, each in brokers.items()}
        cordoned = frozenset(number for number, each in said.items() if each.is_cordoned)
        self._is_new |= (found, cordoned) != (self.brokers, self.cordoned)
        self.brokers, self.cordoned = found, cordoned

    def take_features(self, features: FinalizedFeatures) -> None:
        """Takes in the finalized features; their epoch rises all the time, and changes only with them."""
        if self.features is None or self.features.features != features.features:
            self.features, self._is_new = features, True

    def take_topics(
        self, topics: Mapping[TopicName, Topic], moves: Mapping[TopicPartition, Move], position: int
    ) -> None:
        """Takes in all topics, and which partitions move; `position` is the end of the log that was looked at."""
        moving = {partition.topic for partition in (*moves, *self.moves)}
        before, self.topics, self.moves = self.topics, topics, moves
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
        """Takes in the configurations of some topics."""
        for name, config in configs.items():
            if name in self.topics and self._configs.get(name) != config:
                self._configs[name] = config
                self._changed[name] = position
