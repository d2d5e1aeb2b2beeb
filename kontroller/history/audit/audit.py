"""The audit of a history: all invariants of docs/audit.md that a history can show."""

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.audit import assignments, brokers, controllers, leadership, rival_journals, topics, unclean
from kontroller.history.audit.invariants import Invariant, restrict_to_kind, violations
from kontroller.history.audit.partition_history import partition_history, select_known
from kontroller.history.schemas import ASKED_BY, POSITION, VIOLATIONS
from kontroller.history.transforms.continuity.moments import drop_stamps
from kontroller.history.transforms.partition_intervals import BROKERS_REQUESTS

INVARIANTS: Final[tuple[Invariant, ...]] = (
    *leadership.INVARIANTS, *assignments.INVARIANTS, *unclean.INVARIANTS, *brokers.REGISTERED, *brokers.EPOCHS,
    *topics.INVARIANTS, *controllers.ONE_IN_AN_EPOCH, *controllers.NONE_AFTER_ITS_TIME, *controllers.MEMORY,
    *rival_journals.STATES, *rival_journals.LEADERS,
)  # fmt: skip


def audit(
    events: DataFrame,
    known_spans: DataFrame,
    proofs: DataFrame,
    *,
    recorded: DataFrame | None = None,
    unclean_by_default: bool = False,
    patience_seconds: int = assignments.PATIENCE_SECONDS,
    clock_tolerance_seconds: int = controllers.CLOCK_TOLERANCE_SECONDS,
) -> DataFrame:
    """Return all violations as the table `VIOLATIONS`, from the tables `EVENTS`, `KNOWN_SPANS` and `PROOFS`.

    `recorded`: the records of all journals, in the columns of `EVENTS`, before the choice of accounts; without it, a
    second controller is invisible if its journal was not used. `unclean_by_default`: the controllers' setting of
    unclean.leader.election.enable if the history does not state it. `patience_seconds`: the time for which AR and ISR
    may contradict each other while both are being changed. `clock_tolerance_seconds`: the allowed difference between
    the clocks of two controllers."""
    recorded = events if recorded is None else recorded
    certain = select_known(events, known_spans)
    found = (
        _find_partition_violations(partition_history(certain), patience_seconds),
        unclean.find_forbidden_elections(certain, unclean_by_default=unclean_by_default),
        brokers.find_unregistered_choices(certain),
        brokers.find_fallen_epochs(certain),
        topics.find_topic_violations(certain),
        controllers.find_second_controllers(events, recorded),
        rival_journals.find_contradictions(recorded),
        controllers.find_late_changes(events, known_spans, tolerance_seconds=clock_tolerance_seconds),
        controllers.find_unproven_histories(proofs),
    )
    together = _add_clients(reduce(DataFrame.unionByName, found), events)
    return drop_stamps(together, known_spans, "event_time", pointers="evidence")


def _add_clients(found: DataFrame, events: DataFrame) -> DataFrame:
    """Add the client whose request caused the record of each violation."""
    asked = events.where(f.col("principal").isNotNull() & ~f.col("cause").isin(*BROKERS_REQUESTS))
    place = ["cluster_id", *POSITION]
    rows = found.join(asked.select(*place, *ASKED_BY), place, "left")
    return rows.select(*VIOLATIONS.schema.fieldNames())


def _find_partition_violations(history: DataFrame, patience_seconds: int) -> DataFrame:
    rows = history.where("is_news").selectExpr("*", f"lasts_seconds > {patience_seconds} AS is_long")
    return violations(rows, (*restrict_to_kind("leadership", leadership.INVARIANTS), *assignments.INVARIANTS))
