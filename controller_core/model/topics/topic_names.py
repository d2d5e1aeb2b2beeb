"""Which names a topic may have (Kafka's `Topic` class)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from controller_core.model.ids import TopicName

MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_RESERVED: Final = frozenset({".", ".."})

INTERNAL_TOPICS: Final = frozenset({TopicName("__consumer_offsets"), TopicName("__transaction_state")})
CLUSTER_METADATA_TOPIC: Final = TopicName("__cluster_metadata")


def why_illegal(name: str) -> str | None:
    """What is wrong with a name, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in _RESERVED:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def normalized(name: str) -> str:
    """The form in which metrics know a topic: two names with the same one collide there, and are not both allowed."""
    return name.replace(".", "_")


def by_normalized(names: Iterable[TopicName]) -> Mapping[str, TopicName]:
    """One of the names for each normalized form."""
    return {normalized(name): name for name in names}
