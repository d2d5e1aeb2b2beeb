"""The settings in brokers' files that a controller needs, too, and what holds if the files differ.

Kafka's controller runs in a broker and has that broker's file. A controller outside asks all brokers. Their files differ
while brokers restart one after the other with a new file, or by mistake. The choice never stops work, and prefers the
value that can be corrected later.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

AUTHORIZER: Final = "authorizer.class.name"
AUTO_REBALANCE: Final = "auto.leader.rebalance.enable"
DELETE_TOPIC: Final = "delete.topic.enable"
IMBALANCE_INTERVAL: Final = "leader.imbalance.check.interval.seconds"
IMBALANCE_PERCENTAGE: Final = "leader.imbalance.per.broker.percentage"
PARTITIONS: Final = "num.partitions"
QUOTA_WINDOWS: Final = "controller.quota.window.num"
QUOTA_WINDOW_SIZE: Final = "controller.quota.window.size.seconds"
REMOTE_STORAGE: Final = "remote.log.storage.system.enable"
REPLICATION_FACTOR: Final = "default.replication.factor"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

MIN_IN_SYNC: Final = "min.insync.replicas"

_NUMBERS: Final[Mapping[str, Callable[[Collection[int]], int]]] = {
    # Too many replicas cost space, too few lose data. A file without the line has Kafka's default, which is 1.
    REPLICATION_FACTOR: max,
    PARTITIONS: max,
    # Leaders move later, and bursts of changes are smaller.
    IMBALANCE_PERCENTAGE: max,
    IMBALANCE_INTERVAL: max,
    QUOTA_WINDOWS: min,
    QUOTA_WINDOW_SIZE: min,
}
_SWITCHES: Final = frozenset({UNCLEAN_ELECTION, DELETE_TOPIC, AUTO_REBALANCE, REMOTE_STORAGE})
"""They are on if they are on in all files, because each of them allows something that cannot be undone, or moves leaders.
"""
_CLASSES: Final = frozenset({AUTHORIZER, "alter.config.policy.class.name", "create.topic.policy.class.name"})
"""Java classes. The controller runs none of them. It does the work of one authorizer itself."""
SHARED: Final = frozenset({*_NUMBERS, *_SWITCHES, *_CLASSES, MIN_IN_SYNC})
"""The names of all of them. None is a secret."""


def collect_given(settings: object) -> dict[str, str]:
    """Return the shared settings that a process was given, by their names in a broker's file.

    A process has `num.partitions` as `num_partitions`, which is None if it was not given.
    """
    values = {name: getattr(settings, name.replace(".", "_"), None) for name in SHARED}
    return {name: normalize(name, str(value)) for name, value in sorted(values.items()) if value is not None}


def normalize(name: str, text: str) -> str:
    """Return the usual spelling of a value, such as `true` for `TRUE`. An unreadable value stays as it is."""
    if name in _SWITCHES:
        return text.strip().lower()
    try:
        return text.strip() if name in _CLASSES else str(int(text))
    except ValueError:
        return text.strip()


def choose_number(name: str, texts: Collection[str]) -> int | None:
    """Return the number that holds if brokers' files have these values; None if they have none."""
    numbers = [int(text) for text in (normalize(name, text) for text in texts) if text.lstrip("-").isdecimal()]
    return _NUMBERS[name](numbers) if numbers else None


def choose_switch(name: str, texts: Collection[str]) -> bool | None:
    """Return True if the switch is on in all files; None if no file has a value."""
    return all(normalize(name, text) == "true" for text in texts) if texts else None


def choose_value(name: str, texts: Collection[str]) -> str | None:
    """Return the value that holds at the controller if brokers' files have these; None if it has none.

    It runs no class, so none of them is set there.
    """
    if name in _CLASSES:
        return ""
    found = choose_number(name, texts) if name in _NUMBERS else None
    found = choose_switch(name, texts) if name in _SWITCHES else found
    return None if found is None else normalize(name, str(found))


def is_class(name: str) -> bool:
    """Return True if a setting names a Java class. A broker does not report it if it is not set."""
    return name in _CLASSES
