"""What must hold of brokers: who is chosen is registered, and each registration is newer than the one before."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from controller_pipeline.audit.invariants import RECORD, Invariant, violations

REGISTERED: Final = (
    Invariant(
        id="ChosenAreRegistered",
        broken="kind = 'leadership' AND NOT last_kind <=> 'broker'",
        detail="broker {broker} {IF(is_leader, 'came to lead', 'joined the ISR')} and was not registered",
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


def unregistered_choices(known_events: DataFrame) -> DataFrame:
    """Brokers that came to lead, or into an ISR, while they were not registered.

    Someone who only looks on sees registrations and leaders in any order, so what was inferred is not judged."""
    certain = known_events.where("NOT inferred AND origin <> 'logs'").withColumn("record", f.expr(RECORD))
    registrations = certain.where("kind IN ('broker', 'broker_removed')").selectExpr(
        *_OF_A_SPAN, "CAST(NULL AS STRING) AS topic", "CAST(NULL AS INT) AS partition", "kind", "broker",
        "false AS is_leader",
    )  # fmt: skip
    of_the_broker = Window.partitionBy("cluster_id", "controller_epoch", "span_seq", "broker").orderBy("seq")
    so_far = of_the_broker.rowsBetween(Window.unboundedPreceding, 0)
    is_registration = f.col("kind") != "leadership"
    rows = registrations.unionByName(_choices(certain)).withColumns(
        {
            "last_kind": f.last(f.when(is_registration, f.col("kind")), ignorenulls=True).over(so_far),
            "last_record": f.last(f.when(is_registration, f.col("record")), ignorenulls=True).over(so_far),
        }
    )
    return violations(rows, REGISTERED)


_OF_A_SPAN: Final = ("cluster_id", "controller_epoch", "span_seq", "seq", "record", "inferred")


def _choices(certain: DataFrame) -> DataFrame:
    """A row for each broker that a record makes a leader or a member of an ISR, unless it was one before."""
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


def fallen_broker_epochs(known_events: DataFrame) -> DataFrame:
    """Registrations with a smaller epoch than an earlier one of the same broker: epochs are zxids, which only rise."""
    of_the_broker = Window.partitionBy("cluster_id", "broker").orderBy("controller_epoch", "seq")
    rows = (
        known_events.where("kind = 'broker' AND broker_epoch IS NOT NULL")
        .withColumn("record", f.expr(RECORD))
        .withColumns(
            {
                "epoch_was": f.lag("broker_epoch").over(of_the_broker),
                "record_was": f.lag("record").over(of_the_broker),
            }
        )
    )
    return violations(rows, EPOCHS)
