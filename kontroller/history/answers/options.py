"""What a user may decide about the answers."""

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
    """Raises `ValueError`, which says what to change, for a pattern that is none, and for a time that is not above 0."""

    namespaces: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern and a namespace; the first pattern that is found in a topic's name decides. `$1` in a namespace is
    what the pattern's first group matched. Of other topics it is the text before the first dot; "" where there is none."""
    stalled_after_seconds: int = STALLED_AFTER_SECONDS
    """A reassignment that still runs is stalled when no replica has joined or left the ISR for longer."""
    broker_session_timeout_ms: int = BROKER_SESSION_TIMEOUT_MS
    """`zookeeper.session.timeout.ms` of the brokers, the longest where they differ: for so long at most a broker that died
    was still registered. No journal and no znode says it."""

    def __post_init__(self) -> None:
        for pattern, _ in self.namespaces:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"namespaces: {pattern!r} is no regular expression: {error}; correct it") from error
        if self.stalled_after_seconds <= 0:
            raise ValueError(f"stalled_after_seconds is {self.stalled_after_seconds}; give a number above 0")
        if self.broker_session_timeout_ms < 0:
            raise ValueError(
                f"broker_session_timeout_ms is {self.broker_session_timeout_ms}; give the brokers' "
                "zookeeper.session.timeout.ms, or 0 to leave out what nobody measured"
            )

    def namespace(self) -> Column:
        """The namespace of the column `topic`."""
        topic = f.col("topic")
        by_rule = f.when(topic.contains("."), f.substring_index(topic, ".", 1)).otherwise("")
        for pattern, name in reversed(self.namespaces):
            found = f.regexp_extract(topic, pattern, 0)
            by_rule = f.when(topic.rlike(pattern), f.regexp_replace(found, pattern, name)).otherwise(by_rule)
        return by_rule
