"""The views of a cluster's topics, with the counts and the holders of all of them, which follow each change."""

from collections import Counter

from controller_core.model.ids import BrokerId, TopicName
from controller_operator.kafka.cluster_view import Counts, TopicView


class TopicViews:
    """Of one cluster."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._views: dict[TopicName, TopicView] = {}
        self._topics_on: Counter[BrokerId] = Counter()
        """How many topics have replicas on a broker; brokers without any are not in it."""

    @property
    def holders(self) -> frozenset[BrokerId]:
        """The brokers that replicas are assigned to."""
        return frozenset(self._topics_on)

    def get(self, topic: TopicName) -> TopicView | None:
        """None for a topic that is not there."""
        return self._views.get(topic)

    def take(self, topic: TopicName, after: TopicView | None) -> bool:
        """Takes in what a topic is now, None for one that is gone; returns whether that is anything new."""
        before = self._views.get(topic)
        if after == before:
            return False
        self.counts += (after.counts if after else Counts()) - (before.counts if before else Counts())
        self._move_holders(before.holders if before else frozenset(), after.holders if after else frozenset())
        if after is None:
            del self._views[topic]
        else:
            self._views[topic] = after
        return True

    def _move_holders(self, before: frozenset[BrokerId], after: frozenset[BrokerId]) -> None:
        self._topics_on.update(after - before)
        for broker in before - after:
            self._topics_on[broker] -= 1
            if not self._topics_on[broker]:
                del self._topics_on[broker]

    def copy(self) -> dict[TopicName, TopicView]:
        """All of them now."""
        return dict(self._views)
