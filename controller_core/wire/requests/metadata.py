"""Metadata, in the newest version that brokers of Kafka 2.8 know. No request creates topics."""

from collections.abc import Iterable
from typing import Final

from kio.schema.metadata.v11 import MetadataRequest
from kio.schema.metadata.v11.request import MetadataRequestTopic
from kio.schema.types import TopicName as WireTopicName


def make_metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    """Return a request for the brokers, the controller, and these topics; None asks for all topics."""
    asked = None
    if topics is not None:
        asked = tuple(MetadataRequestTopic(topic_id=None, name=WireTopicName(each)) for each in topics)
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


ALL_TOPICS: Final = make_metadata_request(None)
"""Asks for the brokers, the controller, and all topics."""
NO_TOPICS: Final = make_metadata_request(())
"""Asks for only the brokers and the controller."""
