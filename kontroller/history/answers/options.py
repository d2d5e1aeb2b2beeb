"""The user's options for answers."""

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

STALLED_AFTER_SECONDS: Final = 3600
BROKER_SESSION_TIMEOUT_MS: Final = 18_000
"""Kafka's default of `zookeeper.session.timeout.ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for answers. Raises `ValueError` with advice for an invalid pattern or time."""

    namespaces: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern and a namespace. The first pattern found in a topic's name decides. `$1` in a namespace is the
    match of the pattern's first group. Other topics have the text before the first dot as their namespace, or ""
    without a dot."""
    stalled_after_seconds: int = STALLED_AFTER_SECONDS
    """A running reassignment is stalled if no replica has joined or left the ISR for longer than this."""
    broker_session_timeout_ms: int = BROKER_SESSION_TIMEOUT_MS
    """`zookeeper.session.timeout.ms` of the brokers, the longest if they differ. A dead broker stays registered for at
    most this time. No journal and no znode has this setting."""

    def __post_init__(self) -> None:
        for pattern, _ in self.namespaces:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"namespaces: {pattern!r} is not a regular expression: {error}; correct it") from error
        if self.stalled_after_seconds <= 0:
            raise ValueError(f"stalled_after_seconds is {self.stalled_after_seconds}; give a number above 0")
        if self.broker_session_timeout_ms < 0:
            raise ValueError(
                f"broker_session_timeout_ms is {self.broker_session_timeout_ms}; give the brokers' "
                "zookeeper.session.timeout.ms, or 0 to leave detection times out"
            )

    def namespace(self) -> Column:
        """Return the namespace of the column `topic`."""
        topic = f.col("topic")
        by_rule = f.when(topic.contains("."), f.substring_index(topic, ".", 1)).otherwise("")
        for pattern, name in reversed(self.namespaces):
            found = f.regexp_extract(topic, pattern, 0)
            by_rule = f.when(topic.rlike(pattern), f.regexp_replace(found, pattern, name)).otherwise(by_rule)
        return by_rule
