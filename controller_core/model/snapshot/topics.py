"""The topics of the next snapshot, with the counts and the holders of all of them, updated with each change."""

from collections import Counter

from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.snapshot.topic import Counts, TopicSnapshot


class KnownTopics:
    """The topics that a reader of one cluster knows."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._topics: dict[TopicName, TopicSnapshot] = {}
        self._topics_on: Counter[BrokerId] = Counter()
        """The number of topics with replicas on each broker; brokers without any are not in it."""

    @property
    def holders(self) -> frozenset[BrokerId]:
        """The brokers with replicas."""
        return frozenset(self._topics_on)

    def get(self, topic: TopicName) -> TopicSnapshot | None:
        """Return a topic; None if it does not exist."""
        return self._topics.get(topic)

    def take(self, topic: TopicName, after: TopicSnapshot | None) -> bool:
        """Take in the new state of a topic, or None if it is gone. Return True if it has changed."""
        before = self._topics.get(topic)
        if after == before:
            return False
        self.counts += (after.counts if after else Counts()) - (before.counts if before else Counts())
        self._move_holders(before.holders if before else frozenset(), after.holders if after else frozenset())
        if after is None:
            del self._topics[topic]
        else:
            self._topics[topic] = after
        return True

    def _move_holders(self, before: frozenset[BrokerId], after: frozenset[BrokerId]) -> None:
        self._topics_on.update(after - before)
        for broker in before - after:
            self._topics_on[broker] -= 1
            if not self._topics_on[broker]:
                del self._topics_on[broker]

    def copy(self) -> dict[TopicName, TopicSnapshot]:
        """Return all present topics."""
        return dict(self._topics)
