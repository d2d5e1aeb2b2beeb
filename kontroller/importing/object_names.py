"""Object names for topics whose names Kubernetes does not accept.

A topic whose name is valid in Kubernetes (lower case letters, digits, '-' and '.', RFC 1123) has an object of that
name. Any other topic gets the valid rest of its name in lower case, a '-', and 16 hexadecimal digits of the name's
SHA-256. So an object's name depends on the topic alone, now and in other clusters, and no two topics get the same one:
a name that already ends like such a hash is hashed, too."""

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Final

from controller_operator.resources.common import LONGEST_NAME, is_object_name

_DIGITS: Final = 16
_HASHED: Final = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")


class NameTaken(Exception):
    """Another object has the name already. The message has the name."""


def make_hashed_name(topic: str) -> str:
    """Return the name with a hash, which no other topic gets."""
    digits = sha256(topic.encode()).hexdigest()[:_DIGITS]
    words = re.sub(r"[^a-z0-9]+", "-", topic.lower())[: LONGEST_NAME - _DIGITS - 1].strip("-")
    return f"{words}-{digits}" if words else f"topic-{digits}"


def make_object_name(topic: str) -> str:
    """Return the name of the object for a topic."""
    return topic if is_object_name(topic) and not _HASHED.search(topic) else make_hashed_name(topic)


class ObjectNames:
    """Assigns names in one namespace, without those that objects there have already."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = set(taken)

    def assign_name(self, topic: str, wished: str | None = None) -> str:
        """Return the name for a topic, or the wished one; with a hash if another object has that name.

        Raises `NameTaken`."""
        for name in (wished or make_object_name(topic), make_hashed_name(topic)):
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise NameTaken(f"another object of the namespace has the name {make_hashed_name(topic)}")
