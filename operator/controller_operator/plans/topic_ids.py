"""Topic ids: in Kafka's notation, and for new topics.

The id of a topic to create is written to the object's status first. So an operator that was stopped before or right
after the creation recognizes its own topic. A topic that somebody else created in between has another id.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID, uuid5

from controller_core.model.ids import TopicId, TopicName


def format_id(topic_id: TopicId | None) -> str | None:
    """Return a topic id as Kafka's tools show it: 22 characters of base64url."""
    return None if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def parse_id(shown: str) -> TopicId:
    """Return the topic id that a status shows. Raises `ValueError` if it is invalid."""
    return TopicId(UUID(bytes=urlsafe_b64decode(f"{shown}==")))


def new_topic_id(uid: str, topic: TopicName, previous: str | None) -> TopicId:
    """Return the id of the topic that an object creates next. It differs from `previous` and is the same at every call.

    Like Kafka, avoid ids that begin with a dash, because tools would take them for an option.
    """
    namespace = uuid5(UUID(int=0), uid)
    candidates = (uuid5(namespace, f"{topic}/{previous}/{attempt}") for attempt in range(256))
    return next(TopicId(each) for each in candidates if not (format_id(TopicId(each)) or "-").startswith("-"))
