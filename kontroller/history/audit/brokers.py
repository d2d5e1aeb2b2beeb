"""Invariants of brokers: chosen brokers are registered, and each registration is newer than the one before."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations

REGISTERED: Final = (
    Invariant(
        id="ChosenAreRegistered",
        broken="kind = 'leadership' AND NOT last_kind <=> 'broker'",
        detail="broker {broker} {IF(is_leader, 'became the leader', 'joined the ISR')} but was not registered",
        evidence=("last_record",),
        broker="broker",
    ),
)

EPOCHS: Final = (
    Invariant(
        id="BrokerEpochNeverFalls",
        broken="broker_epoch < epoch_was",
        detail="the epoch of broker {broker} fell from {epoch_was} to {broker_epoch}: ZooKeeper lost what it had, or the "
        "records are of two clusters",
        evidence=("record_was",),
        broker="broker",
    ),
)


def find_unregistered_choices(known_events: DataFrame) -> DataFrame:
    """Return the brokers that became leader, or joined an ISR, without being registered.

    Inferred records are not judged, because a recorder sees registrations and leaders in any order.

    In a long term a broker may be chosen millions of times but registers rarely. So its registrations are sorted and
    broadcast to the choices."""
    certain = known_events.where("NOT inferred AND origin <> 'logs'").withColumn("record", f.expr(RECORD))
    when = " AND ".join(f"choices.{name} = said.{name}" for name in _OF_A_BROKER)
    rows = (
        _choices(certain)
        .alias("choices")
        .join(
            f.broadcast(_registrations(certain)).alias("said"),
            f.expr(f"{when} AND choices.seq > said.seq AND choices.seq < said.until_seq"),
            "left",
        )
    )
    return violations(rows.select("choices.*", "last_kind", "last_record"), REGISTERED)


_OF_A_BROKER: Final = ("cluster_id", "controller_epoch", "span_seq", "broker")
_END: Final = 2**63 - 1
"""A number after every record."""


def _registrations(certain: DataFrame) -> DataFrame:
    """Return the last statement about each broker itself, `last_kind` and `last_record`, valid until the record
    `until_seq`.

    Repetitions that it is still registered, as in every snapshot, are left out."""
    in_order = Window.partitionBy(*_OF_A_BROKER).orderBy("seq")
    told = certain.where("kind IN ('broker', 'broker_removed')").withColumn("kind_was", f.lag("kind").over(in_order))
    news = told.where("kind = 'broker_removed' OR NOT kind_was <=> 'broker'")
    return news.select(
        *_OF_A_BROKER,
        "seq",
        f.lead("seq", 1, _END).over(in_order).alias("until_seq"),
        f.col("kind").alias("last_kind"),
        f.col("record").alias("last_record"),
    )


_OF_A_SPAN: Final = ("cluster_id", "controller_epoch", "span_seq", "seq", "record", "inferred")


def _choices(certain: DataFrame) -> DataFrame:
    """Return a row for each broker that a record makes a leader or a member of an ISR, unless it was one before."""
    of_the_partition = Window.partitionBy("cluster_id", "controller_epoch", "span_seq", "topic", "partition")
    before = of_the_partition.orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    leaderships = certain.where("kind = 'leadership'").withColumn(
        "isr_was", f.last("isr", ignorenulls=True).over(before)
    )
    leading = "IF(leader >= 0, array(leader), array())"
    joining = "coalesce(array_except(isr, coalesce(isr_was, array())), array())"
    return (
        leaderships.where("NOT snapshot")
        .selectExpr(
            *_OF_A_SPAN, "topic", "partition", "kind", "leader", f"explode(array_union({leading}, {joining})) AS broker"
        )
        .selectExpr("* EXCEPT (leader)", "coalesce(broker = leader, false) AS is_leader")
    )


def find_fallen_epochs(known_events: DataFrame) -> DataFrame:
    """Return registrations with a smaller epoch than an earlier one of the broker. Epochs are zxids, which only
    rise."""
    of_the_broker = Window.partitionBy("cluster_id", "broker").orderBy("controller_epoch", "seq")
    rows = (
        known_events.where("kind = 'broker' AND broker_epoch >= 0")
        .withColumn("record", f.expr(RECORD))
        .withColumns(
            {
                "epoch_was": f.lag("broker_epoch").over(of_the_broker),
                "record_was": f.lag("record").over(of_the_broker),
            }
        )
    )
    return violations(rows, EPOCHS)
