"""Why a process leaves alone a role that it could take: for the log, the metric and `/readyz` alike."""

from enum import Enum
from typing import Final


class Hindrance(Enum):
    """Why a process leaves alone a role that it could take; the values are those of the metric."""

    KRAFT_MIGRATION = "kraft_migration"
    FAILED_TERMS = "failed_terms"
    BROKERS_OUT_OF_REACH = "brokers_out_of_reach"
    HOT_STANDBY = "hot_standby"

    @property
    def explanation(self) -> str:
        """What it means, and what to do about it."""
        return _EXPLANATIONS[self]


_EXPLANATIONS: Final = {
    Hindrance.KRAFT_MIGRATION: "a KRaft controller migrates this cluster: stop this process, or end the migration",
    Hindrance.FAILED_TERMS: "the last terms ended in errors that nobody expected: the log has them, report them",
    Hindrance.BROKERS_OUT_OF_REACH: "most of the registered brokers do not answer: see to the network and the listener",
    Hindrance.HOT_STANDBY: "another process stands by with the state read, and would take over faster",
}
