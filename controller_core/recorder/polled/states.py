"""Turns the brokers' answers into the state that a journal records.

Brokers do not report everything. Epochs of brokers and partitions, and the controller epoch of a leadership, are -1,
which is not an epoch."""

from collections.abc import Iterable

from controller_core.journal import configs
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.configs import RecordedConfig
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.metadata import PartitionState
from controller_core.polling.known_cluster import KnownCluster
from controller_core.recorder.looker import derive_creation


class States:
    """The states of one cluster. Unchanged parts of the next state are the same objects."""

    def __init__(self, known: KnownCluster) -> None:
        self._known = known
        self._last = StateCopy()

    def make_next(self) -> StateCopy:
        """Return the present state."""
        if self._known.has_news:
            self._last = self._renew(self._known.take_news())
        return self._last

    def _renew(self, changed: Iterable[TopicName]) -> StateCopy:
        before, known = self._last, self._known
        topics, states, of_topics = dict(before.topics), dict(before.states), dict(before.topic_configs)
        for name in changed:
            for number in topics[name].partitions if name in topics else ():
                states.pop(TopicPartition(name, number), None)
            topics.pop(name, None)
            of_topics.pop(name, None)
            if name in known.topics:
                topics[name] = self._copy_topic(name)
                states |= self._copy_states(name)
                of_topics |= self._copy_config(name)
        return StateCopy(
            brokers=known.brokers, topics=topics, states=states, features=known.features, topic_configs=of_topics
        )

    def _copy_topic(self, name: TopicName) -> TopicCopy:
        topic_id = self._known.topics[name].topic_id
        partitions = self._known.list_assignments(name)
        return TopicCopy(topic_id=topic_id, czxid=derive_creation(topic_id), partitions=partitions)

    def _copy_states(self, name: TopicName) -> dict[TopicPartition, PartitionState]:
        partitions = self._known.topics[name].partitions
        return {TopicPartition(name, number): each.state for number, each in partitions.items()}

    def _copy_config(self, name: TopicName) -> dict[TopicName, RecordedConfig]:
        found = configs.select_recorded(self._known.find_config(name).own, configs.TOPIC_CONFIGS)
        return {name: found} if found else {}
