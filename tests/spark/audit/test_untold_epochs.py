"""A history of a cluster that was only polled, with no epochs except leaders': the audit finds nothing wrong."""

from typing import Any, Final

from pyspark.sql import SparkSession

from tests.spark.audit.story import story
from tests.spark.audit.tables import Tables

_UNTOLD: Final = ("partition_epoch", "state_controller_epoch", "broker_epoch")
TOLD_AGAIN: Final = 40
"""The number of records without epochs. Later records have them again."""


def _untell(record: dict[str, Any]) -> None:
    """Remove the epochs from a record, as a recorder that polls writes it."""
    record |= {name: -1 for name in _UNTOLD if record.get(name) is not None}
    if "leader_recovery_state" in record:
        record["leader_recovery_state"] = 0


def _audit_without(spark: SparkSession, untold: slice) -> list[tuple[str, str]]:
    tables = Tables()
    records = tables.add(story())
    for record in records:
        record |= {"inferred": True, "unclean": False}
    for record in records[untold]:
        _untell(record)
    return [(row.invariant, row.detail) for row in tables.audit(spark, unclean_by_default=True)]


def test_nothing_is_found_where_epochs_are_not_told(spark: SparkSession) -> None:
    assert _audit_without(spark, slice(None)) == []


def test_epochs_that_are_told_no_more_have_not_fallen(spark: SparkSession) -> None:
    kinds = {invariant for invariant, _ in _audit_without(spark, slice(TOLD_AGAIN, None))}
    assert kinds.isdisjoint({"PartitionEpochNeverFalls", "DecidingEpochNeverFalls", "BrokerEpochNeverFalls"})
