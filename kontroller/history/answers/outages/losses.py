"""The losses of brokers, and the partitions that each of them led.

A loss is the end of a registration. The controller notices it when the broker's ZooKeeper session ends: at once if the
broker was stopped, up to a session timeout later if it died. A broker that asked for a controlled shutdown has
announced it, so it needs no detection.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.states import (
    NO_LEADER,
    add_leaderless_time,
    add_stretches,
    interval_order,
    previous_value,
    reverse_interval_order,
)

LOSS: Final = ("cluster_id", "controller_epoch", "seq", "broker")
"""The columns that identify a loss."""
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
_OF_LOSS: Final = (
    *LOSS, "event_time", "lost_at", "back_at", "cause", "correlation_id", "is_bounce", "detection_us",
)  # fmt: skip


def losses(events: DataFrame, known_spans: DataFrame, led: DataFrame, *, session_timeout_ms: int) -> DataFrame:
    """Return each end of a broker's registration in known time. `is_bounce`: another registration began with the same
    event.

    `lost_at`: the time at which the controller noticed. `back_at`: the time at which the broker registered again; null
    if it did not. `detection_us`: the longest time before `lost_at` that it can have been dead. `led`: `add_tenures` of
    the partitions."""
    ends = _select_known(_ends_of_registrations(events), known_spans)
    keys = ["cluster_id", "broker"]
    is_of_it = (f.col("announced") < f.col("place")) & (
        f.col("registered").isNull() | (f.col("announced") > f.col("registered"))
    )
    of_the_announced = ends.join(_announcements(led), keys).where(is_of_it).groupBy(*LOSS)
    announced = of_the_announced.agg(f.lit(True).alias("is_announced"))
    undetected_us = f.lit(session_timeout_ms * 1000).cast("long")
    detection_us = f.when(f.col("is_announced"), f.lit(0).cast("long")).otherwise(undetected_us)
    return ends.join(announced, list(LOSS), "left").withColumn("detection_us", detection_us).select(*_OF_LOSS)


def add_tenures(partition_intervals: DataFrame) -> DataFrame:
    """Return the known intervals with the tenure of their leader.

    `elected`: the place (struct of epoch and number) at which the tenure began. `next`: the change of leader that ended
    it; null if none is known. `moved_at`: the time at which the partition had a leader again. `stretch_ended`: the end
    of the known time after it. `stretch_ends_all`: True if that is the end of the history."""
    after = reverse_interval_order().rowsBetween(Window.unboundedPreceding, -1)
    place = f.struct("controller_epoch", "seq")
    change = f.struct("stretch", place.alias("place"), "correlation_id", "cause", "began")
    elected = f.col("_changed") & (f.col("leader") != NO_LEADER)
    rows = add_stretches(add_leaderless_time(partition_intervals))
    end = f.when(f.col("followed_by") != "change", f.struct("ended", "followed_by"))
    rows = rows.withColumn("_changed", ~previous_value("leader").eqNullSafe(f.col("leader"))).withColumns({
        "elected": f.last(f.when(f.col("_changed"), place), ignorenulls=True).over(interval_order()),
        "_next": f.last(f.when(f.col("_changed"), change), ignorenulls=True).over(after),
        "_elected": f.last(f.when(elected, change), ignorenulls=True).over(after),
        "_end": f.last(end, ignorenulls=True).over(reverse_interval_order()),
    })  # fmt: skip
    return rows.withColumns({
        "is_election": f.col("_changed"),
        "next": f.when(f.col("_next.stretch") == f.col("stretch"), f.col("_next")),
        "moved_at": f.when(f.col("_elected.stretch") == f.col("stretch"), f.col("_elected.began")),
        "stretch_ended": f.col("_end.ended"),
        "stretch_ends_all": f.col("_end.followed_by") == "end",
    }).selectExpr("* except (_changed, _next, _elected, _end)")  # fmt: skip


def join_losses(led: DataFrame, lost: DataFrame) -> DataFrame:
    """Return the intervals of `add_tenures` whose leader was lost during their tenure, with the loss as columns
    `loss_...`."""
    loss = lost.select(
        *(f.col(name).alias(f"loss_{name}") for name in _OF_LOSS),
        f.struct("controller_epoch", "seq").alias("loss_place"),
    )
    return led.join(f.broadcast(loss), _is_led_at_loss(), "inner")


def _is_led_at_loss() -> Column:
    """Return True if the broker led the partition when it was lost. Records of the same event may have either order.

    A tenure continues over the epochs of several controllers if no time between them is unknown."""
    by_this = f.coalesce(f.col("next.correlation_id") == f.col("loss_correlation_id"), f.lit(False))
    before = f.col("elected") < f.col("loss_place")
    same_epoch = f.col("controller_epoch") == f.col("loss_controller_epoch")
    known_then = (f.col("stretch_ended") > f.col("loss_event_time")) | (
        (f.col("stretch_ended") == f.col("loss_event_time")) & (same_epoch | f.col("stretch_ends_all"))
    )
    ends_later = f.coalesce(f.col("next.place") > f.col("loss_place"), known_then)
    return (
        (f.col("cluster_id") == f.col("loss_cluster_id"))
        & (f.col("leader") == f.col("loss_broker"))
        & (by_this | (~f.col("loss_is_bounce") & before & ends_later))
    )


def _ends_of_registrations(events: DataFrame) -> DataFrame:
    """Return the ends of registrations with `place`, and `registered`, the place of the registration's first record if
    known."""
    order = Window.partitionBy("cluster_id", "broker").orderBy("controller_epoch", "seq")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    is_registered = f.col("kind") == "broker"
    replaced = (
        is_registered
        & ~f.coalesce("snapshot", f.lit(False))
        & (f.lag("kind").over(order) == "broker")
        & (f.lag("controller_epoch").over(order) == f.col("controller_epoch"))
        & (f.lag("broker_epoch").over(order) != f.col("broker_epoch"))
    )
    next_is_there = f.lead("kind").over(order) == "broker"
    came_back = next_is_there & (f.lead("correlation_id").over(order) == f.col("correlation_id"))
    first = f.min(f.struct("controller_epoch", "seq")).over(Window.partitionBy("cluster_id", "broker", "broker_epoch"))
    rows = events.where(f.col("kind").isin("broker", "broker_removed")).withColumns({
        "_replaced": f.coalesce(replaced, f.lit(False)),
        "_came_back": f.coalesce(came_back, f.lit(False)),
        "_next_at": f.when(next_is_there, f.lead("event_time").over(order)),
        "_first": f.when(is_registered & f.col("broker_epoch").isNotNull(), first),
    })  # fmt: skip
    rows = rows.withColumn("registered", f.last("_first", ignorenulls=True).over(before))
    is_bounce = f.col("_replaced") | f.col("_came_back")
    return rows.where("_replaced or kind = 'broker_removed'").select(
        *LOSS,
        "event_time",
        "took_us",
        f.when(~is_bounce, f.col("_next_at")).alias("back_at"),
        "cause",
        "correlation_id",
        is_bounce.alias("is_bounce"),
        f.struct("controller_epoch", "seq").alias("place"),
        "registered",
    )


def _select_known(ends: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Return the ends in known time, so that it is known what the broker led, with `lost_at` by a trusted clock."""
    spans = known_spans.where("has_time").select(
        "cluster_id", "controller_epoch", "first_seq", "last_seq", "began", "ended"
    )
    known = ends.join(f.broadcast(spans), ["cluster_id", "controller_epoch"])
    known = known.where("seq between first_seq and last_seq")
    known = known.withColumn("event_time", f.greatest("began", f.least("event_time", "ended")))
    event_us = f.unix_micros("event_time")
    # A record may claim any duration. Nothing was noticed before 1970, and a later moment cannot overflow.
    heard_at = f.timestamp_micros(event_us - f.least(f.coalesce("took_us", f.lit(0)), event_us))
    return known.withColumn("lost_at", heard_at).selectExpr("* except (first_seq, last_seq, began, ended, took_us)")


def _announcements(led: DataFrame) -> DataFrame:
    """Return the places (`announced`) at which brokers lost leaderships because they asked for a controlled
    shutdown."""
    moved = led.where(f.col("is_election") & (f.col("next.cause") == CONTROLLED_SHUTDOWN))
    by_event = moved.groupBy("cluster_id", f.col("leader").alias("broker"), f.col("next.correlation_id").alias("event"))
    return by_event.agg(f.min("next.place").alias("announced")).selectExpr("* except (event)")
