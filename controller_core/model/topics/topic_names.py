"""The legal names of topics (Kafka's `Topic` class)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from controller_core.model.ids import TopicName

MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_RESERVED: Final = frozenset({".", ".."})

INTERNAL_TOPICS: Final = frozenset({TopicName("__consumer_offsets"), TopicName("__transaction_state")})
CLUSTER_METADATA_TOPIC: Final = TopicName("__cluster_metadata")


def explain_illegal(name: str) -> str | None:
    """Return the objection to a name; None if it is legal."""
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


def normalize(name: str) -> str:
    """Return the form of a topic's name in metrics.

    Two names with the same form collide there, so only one is allowed.
    """
    return name.replace(".", "_")


def group_by_normalized(names: Iterable[TopicName]) -> Mapping[str, TopicName]:
    """Return one of the names for each normalized form."""
    return {normalize(name): name for name in names}
