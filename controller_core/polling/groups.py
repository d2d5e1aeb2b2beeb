"""Topics in groups that are asked about together, and whether what is told of a group is what was told before.

Reading an answer takes far longer than comparing it.
"""

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final

from controller_core.model.ids import TopicName

TOPICS_AT_ONCE: Final = 100
"""Of one request."""

Group = tuple[TopicName, ...]


def groups_of(topics: Sequence[TopicName]) -> list[Group]:
    """All of these topics, in their order."""
    return [tuple(topics[first : first + TOPICS_AT_ONCE]) for first in range(0, len(topics), TOPICS_AT_ONCE)]


class Told:
    """What was told last about each group, as long as nothing newer is known of any topic in it."""

    def __init__(self) -> None:
        self._digests: dict[Group, bytes] = {}

    def is_as_before(self, group: Group, content: bytes) -> bool:
        """Whether nothing was told in this answer that was not taken already."""
        return self._digests.get(group) == _digest(content)

    def take(self, group: Group, content: bytes) -> None:
        """All of this answer is known now."""
        self._digests[group] = _digest(content)

    def keep(self, groups: Collection[Group]) -> None:
        """Forgets all others: topics have come or gone."""
        self._digests = {group: self._digests[group] for group in groups if group in self._digests}

    def forget(self, topics: Collection[TopicName]) -> None:
        """Something newer is known of these, or will be."""
        self._digests = {group: told for group, told in self._digests.items() if set(group).isdisjoint(topics)}


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
