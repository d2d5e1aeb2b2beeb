"""Turns snapshots of a cluster into the state that a journal records.

Brokers do not report everything. Epochs of brokers and partitions, and the controller epoch of a leadership, are -1,
which is not an epoch."""

from controller_core.journal import configs
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_core.recorder.looker import derive_creation


def renew_state(before: StateCopy, snapshot: Snapshot) -> StateCopy:
    """Return the state of a snapshot. Parts that are unchanged since the state of the snapshot before are the same
    objects."""
    topics, states, of_topics = dict(before.topics), dict(before.states), dict(before.topic_configs)
    for name in snapshot.changed:
        for number in topics[name].partitions if name in topics else ():
            states.pop(TopicPartition(name, number), None)
        topics.pop(name, None)
        of_topics.pop(name, None)
        if (topic := snapshot.topics.get(name)) is not None:
            topics[name] = _copy_topic(topic)
            states |= {TopicPartition(name, number): state for number, state in topic.states.items()}
            if config := configs.select_recorded(topic.config, configs.TOPIC_CONFIGS):
                of_topics[name] = config
    return StateCopy(
        brokers=snapshot.brokers, topics=topics, states=states, features=snapshot.features, topic_configs=of_topics
    )


def _copy_topic(topic: TopicSnapshot) -> TopicCopy:
    topic_id = topic.assignment.topic_id
    assert topic_id is not None, "without ZooKeeper each topic has an id"
    return TopicCopy(topic_id=topic_id, czxid=derive_creation(topic_id), partitions=topic.partitions)
