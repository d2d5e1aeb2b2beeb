"""The views of a cluster's topics, and the counts of all of them, which follow each change instead of being made anew."""

from controller_core.model.ids import TopicName
from controller_operator.kafka.cluster_view import Counts, TopicView


class TopicViews:
    """Of one cluster."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._views: dict[TopicName, TopicView] = {}

    def get(self, topic: TopicName) -> TopicView | None:
        """None for a topic that is not there."""
        return self._views.get(topic)

    def take(self, topic: TopicName, after: TopicView | None) -> bool:
        """Takes in what a topic is now, None for one that is gone; returns whether that is anything new."""
        before = self._views.get(topic)
        if after == before:
            return False
        self.counts += (after.counts if after else Counts()) - (before.counts if before else Counts())
        if after is None:
            del self._views[topic]
        else:
            self._views[topic] = after
        return True

    def copy(self) -> dict[TopicName, TopicView]:
        """All of them now."""
        return dict(self._views)
