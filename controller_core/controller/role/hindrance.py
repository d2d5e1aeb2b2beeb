"""Why a process leaves alone a role that it could take: for the log, the metric and `/readyz` alike."""

from enum import Enum
from typing import Final


class Hindrance(Enum):
    """Why a process leaves alone a role that it could take; the values are those of the metric."""

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
        """What it means, and what to do about it."""
        return _EXPLANATIONS[self]

    @property
    def is_by_choice(self) -> bool:
        """Whether the process could lead well, and somebody wants another to: nothing is wrong with it."""
        return self in _BY_CHOICE


_EXPLANATIONS: Final = {
    Hindrance.KRAFT_MIGRATION: "a KRaft controller migrates this cluster: stop this process, or end the migration",
    Hindrance.FAILED_TERMS: "the last terms ended in errors that nobody expected: the log has them, report them",
    Hindrance.BROKERS_OUT_OF_REACH: "most of the registered brokers do not answer: see to the network and the listener",
    Hindrance.HOT_STANDBY: "another process stands by with the state read, and would take over faster",
    Hindrance.OTHER_ASKED: "another process was asked to take the role",
    Hindrance.HANDED_OVER: "the role was handed over to Kafka's brokers: `kontroller controller take-over` takes it back",
    Hindrance.SHARED: "a broker has the role, which this process leaves alone: `kontroller controller take-over` takes it",
    Hindrance.TAKEN_TOO_OFTEN: "brokers got the role again and again: see why controllers end, or lose their sessions",
}
_BY_CHOICE: Final = frozenset(
    {Hindrance.HOT_STANDBY, Hindrance.OTHER_ASKED, Hindrance.HANDED_OVER, Hindrance.SHARED, Hindrance.TAKEN_TOO_OFTEN}
)
