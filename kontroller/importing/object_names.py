"""Names of objects for topics whose names Kubernetes does not take.

A topic whose name Kubernetes takes (lower case letters, digits, '-' and '.', RFC 1123) has an object of that name. Any
other gets what is left of its name in lower case, and behind it a '-' and 16 hexadecimal digits of the name's SHA-256. So
the name of an object follows from the topic alone, today and in another cluster, and no two topics get the same: a topic
whose own name already ends like such a hash is treated as if Kubernetes did not take it.
"""

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Final

_LONGEST: Final = 253
_DIGITS: Final = 16
_LEGAL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASHED: Final = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")


class NameTaken(Exception):
    """Another object has the name already; the message says which name."""


def is_object_name(name: str) -> bool:
    """Whether Kubernetes takes it as an object's name."""
    return len(name) <= _LONGEST and _LEGAL.fullmatch(name) is not None


def hashed_name(topic: str) -> str:
    """The name that tells a topic from all others by a hash."""
    digits = sha256(topic.encode()).hexdigest()[:_DIGITS]
    words = re.sub(r"[^a-z0-9]+", "-", topic.lower())[: _LONGEST - _DIGITS - 1].strip("-")
    return f"{words}-{digits}" if words else f"topic-{digits}"


def object_name(topic: str) -> str:
    """The name of the object for a topic."""
    return topic if is_object_name(topic) and not _HASHED.search(topic) else hashed_name(topic)


class ObjectNames:
    """The names that are given out for one namespace, beside those that objects there have already."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = set(taken)

    def name_for(self, topic: str, wished: str | None = None) -> str:
        """The name for a topic, or the one that is wished for; with a hash where another object has that one.

        Raises `NameTaken`."""
        for name in (wished or object_name(topic), hashed_name(topic)):
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise NameTaken(f"another object of the namespace has the name {hashed_name(topic)}")
