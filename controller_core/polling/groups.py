"""Groups of topics for one request each, with digests of their last answers.

Parsing an answer takes far longer than comparing it."""

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final

from controller_core.model.ids import TopicName

TOPICS_AT_ONCE: Final = 100
"""Topics in one request."""

Group = tuple[TopicName, ...]


def make_groups(topics: Sequence[TopicName]) -> list[Group]:
    """Split topics into groups, in order."""
    return [tuple(topics[first : first + TOPICS_AT_ONCE]) for first in range(0, len(topics), TOPICS_AT_ONCE)]


class Told:
    """The last answer about each group, as long as nothing newer is known of any topic in it."""

    def __init__(self) -> None:
        self._digests: dict[Group, bytes] = {}

    def is_as_before(self, group: Group, content: bytes) -> bool:
        """Return True if this answer has nothing new."""
        return self._digests.get(group) == _make_digest(content)

    def take(self, group: Group, content: bytes) -> None:
        """Store that all of this answer is known."""
        self._digests[group] = _make_digest(content)

    def keep(self, groups: Collection[Group]) -> None:
        """Keep only these groups, because topics have come or gone."""
        self._digests = {group: self._digests[group] for group in groups if group in self._digests}

    def forget(self, topics: Collection[TopicName]) -> None:
        """Forget the answers about these topics, because something newer is known, or will be."""
        self._digests = {group: told for group, told in self._digests.items() if set(group).isdisjoint(topics)}


def _make_digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
