"""The record of leftovers of deleted objects: a ConfigMap beside the operator.

Events are forbidden in a namespace that is being deleted, and kept for an hour only. So the operator also writes each
leftover into a ConfigMap of its own namespace, as an entry that `kubectl kontroller leftovers` shows.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Self

LEFTOVERS_LABEL: Final = "kontroller.dev/leftovers"
"""The label that finds all of these ConfigMaps."""
MOST_LEFTOVERS: Final = 100
"""Entries of a ConfigMap; the oldest are dropped. It has room for a megabyte, and an entry has about 1000
characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that an object has left behind."""

    time: str
    """The time at which the object was deleted, or seen to be gone."""
    kind: str
    namespace: str
    name: str
    reason: str
    message: str

    def render(self) -> str:
        """Return the value of the entry."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the leftover of an entry. Raises `ValueError` if the entry is no leftover."""
        try:
            said = json.loads(text)
            return cls(**{str(name): str(value) for name, value in said.items()})
        except (AttributeError, TypeError) as error:
            raise ValueError(f"no leftover: {text[:100]}") from error

    @staticmethod
    def all_of(entries: Mapping[str, str]) -> "list[Leftover]":
        """Return the leftovers of a ConfigMap, the newest first. Entries of others are ignored."""
        found = []
        for text in entries.values():
            try:
                found.append(Leftover.parse(text))
            except ValueError:
                continue
        return sorted(found, key=lambda each: (each.time, each.namespace, each.name), reverse=True)
