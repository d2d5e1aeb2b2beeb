"""Topic ids: as Kafka shows them, and those that new topics get.

The id of a topic that is to be created is written to the object's status first. So an operator that was stopped between
that and the creation, or right after it, knows the topic for its own; one that another hand created in between has
another id.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID, uuid5

from controller_core.model.ids import TopicId, TopicName


def shown_id(topic_id: TopicId | None) -> str | None:
    """A topic id as Kafka's tools show it: 22 characters of base64url."""
    return None if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def parsed_id(shown: str) -> TopicId:
    """The topic id that a status shows. Raises `ValueError` where it is none."""
    return TopicId(UUID(bytes=urlsafe_b64decode(f"{shown}==")))


def new_topic_id(uid: str, topic: TopicName, previous: str | None) -> TopicId:
    """The id of the topic that an object creates next: another one than the `previous`, and the same at every call.

    Kafka gives out no id that begins with a dash, as tools would take it for an option.
    """
    namespace = uuid5(UUID(int=0), uid)
    candidates = (uuid5(namespace, f"{topic}/{previous}/{attempt}") for attempt in range(256))
    return next(TopicId(each) for each in candidates if not (shown_id(TopicId(each)) or "-").startswith("-"))
