"""The reasons why a process leaves alone a role that it could take, for the log, the metric and `/readyz`."""

from enum import Enum
from typing import Final


class Hindrance(Enum):
    """The reason why a process leaves alone a role that it could take. The values are those of the metric."""

    KRAFT_MIGRATION = "kraft_migration"
    FAILED_TERMS = "failed_terms"
    BROKERS_OUT_OF_REACH = "brokers_out_of_reach"
    HOT_STANDBY = "hot_standby"
    OTHER_ASKED = "other_asked"
    HANDED_OVER = "handed_over"
    SHARED = "shared"
    TAKEN_TOO_OFTEN = "taken_too_often"

    @property
    def explanation(self) -> str:
        """The meaning, and the remedy."""
        return _EXPLANATIONS[self]

    @property
    def is_by_choice(self) -> bool:
        """True if this process could lead well, but somebody wants another one to."""
        return self in _BY_CHOICE


_EXPLANATIONS: Final = {
    Hindrance.KRAFT_MIGRATION: "a KRaft controller migrates this cluster: stop this process, or end the migration",
    Hindrance.FAILED_TERMS: "the last terms ended in unexpected errors: report the errors in the log",
    Hindrance.BROKERS_OUT_OF_REACH: "most of the registered brokers do not answer: check the network and the listener",
    Hindrance.HOT_STANDBY: "another process is a hot standby and would take over faster",
    Hindrance.OTHER_ASKED: "another process was asked to take the role",
    Hindrance.HANDED_OVER: "the role was handed over to Kafka's brokers: `kontroller controller take-over` takes it back",
    Hindrance.SHARED: "a broker has the role, and this process shares it: `kontroller controller take-over` takes it",
    Hindrance.TAKEN_TOO_OFTEN: "brokers got the role again and again: check why controllers end or lose sessions",
}
_BY_CHOICE: Final = frozenset(
    {Hindrance.HOT_STANDBY, Hindrance.OTHER_ASKED, Hindrance.HANDED_OVER, Hindrance.SHARED, Hindrance.TAKEN_TOO_OFTEN}
)
