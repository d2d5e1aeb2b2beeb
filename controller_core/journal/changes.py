"""Records changes of the state in memory where they happen, so that no handler has to remember to report them.

The collections of the state that the journal records are `Tracked`: setting or removing an entry records it with its
previous value. Values are immutable, so a change is two references. Another thread does the rest later (finding the
differences, JSON). Nothing is recorded until `Changes` is opened, which happens when a snapshot is taken.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kind(StrEnum):
    """The subject of a record. A kind that ends in `_removed` reports the removal of the entry."""

    CONTROLLER_ELECTED = "controller_elected"
    CONTROLLER_RESIGNED = "controller_resigned"
    CONTROLLER_ALIVE = "controller_alive"
    RECORDER_STARTED = "recorder_started"
    BROKER = "broker"
    BROKER_REMOVED = "broker_removed"
    TOPIC = "topic"
    TOPIC_REMOVED = "topic_removed"
    ASSIGNMENT = "assignment"
    ASSIGNMENT_REMOVED = "assignment_removed"
    LEADERSHIP = "leadership"
    LEADERSHIP_REMOVED = "leadership_removed"
    FEATURES = "features"
    FEATURES_REMOVED = "features_removed"
    TOPIC_CONFIG = "topic_config"
    TOPIC_CONFIG_REMOVED = "topic_config_removed"
    BROKER_CONFIG = "broker_config"
    BROKER_CONFIG_REMOVED = "broker_config_removed"
    BROKER_STATIC_CONFIG = "broker_static_config"
    BROKER_STATIC_CONFIG_REMOVED = "broker_static_config_removed"
    OFFLINE_REPLICAS = "offline_replicas"
    OFFLINE_REPLICAS_REMOVED = "offline_replicas_removed"
    SNAPSHOT_STARTED = "snapshot_started"
    SNAPSHOT_ENDED = "snapshot_ended"
    REQUEST = "request"
    GAP = "gap"


REMOVED = {kind: Kind(f"{kind}_removed") for kind in Kind if f"{kind}_removed" in set(Kind)}
"""The kind that records the removal of each kind of entry."""


class Change(NamedTuple):
    """An entry that was set, or removed (`after` is None)."""

    kind: Kind
    key: Any
    before: Any
    after: Any


class Changes:
    """The changes since the last call of `take`."""

    def __init__(self) -> None:
        self.is_open = False
        self._recorded: list[Change] = []

    def record(self, kind: Kind, key: object, before: object, after: object) -> None:
        if self.is_open:
            self._recorded.append(Change(kind, key, before, after))

    def take(self) -> list[Change]:
        """Return the changes since the last call, in their order."""
        recorded, self._recorded = self._recorded, []
        return recorded


class Tracked(dict[K, V]):
    """A dictionary that records its changes. Unused ways to change a dictionary are not supported."""

    __slots__ = ("_changes", "_kind")

    def __init__(self, kind: Kind, changes: Changes) -> None:
        super().__init__()
        self._kind = kind
        self._changes = changes

    def __setitem__(self, key: K, value: V) -> None:
        if self._changes.is_open:
            self._changes.record(self._kind, key, self.get(key), value)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        before = self[key]
        super().__delitem__(key)
        self._changes.record(self._kind, key, before, None)

    def pop(self, key: K, *default: Any) -> Any:
        if key in self:
            self._changes.record(self._kind, key, self[key], None)
        return super().pop(key, *default)

    def update(self, other: Mapping[K, V]) -> None:  # type: ignore[override]  # pairs and keywords are not used
        if not self._changes.is_open:
            super().update(other)
            return
        for key, value in other.items():
            self[key] = value

    def _refuse_change(self, *_: object, **__: object) -> Any:
        raise NotImplementedError("changes made in this way are not tracked")

    clear: Callable[..., Any] = _refuse_change
    popitem: Callable[..., Any] = _refuse_change
    setdefault: Callable[..., Any] = _refuse_change
    __ior__: Callable[..., Any] = _refuse_change


def make_tracked_dict(kind: Kind, changes: Changes | None) -> dict[K, V]:
    """Return a dictionary that records its changes, or a plain one, which costs nothing, if `changes` is None."""
    return {} if changes is None else Tracked(kind, changes)
