"""When the state of a cluster is known: from a snapshot to the last record before something is missing, or nobody wrote.

A history is cut wherever a record is missing, is a gap, or says that a recorder or a term began. In each piece the known
begins with its first snapshot. Pieces and snapshots are few, so that they may be put in order by cluster.

Text logs have no snapshots. There a span is a whole epoch, in which a thing is known from its first mention on, and what
was known in the epoch before is still known if that is the one before: nobody else can have changed it.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_pipeline.schemas import FLAG, INT, KNOWN_SPANS, LONG, TEXT, TIME, columns
from controller_pipeline.transforms.journals import BREAKS, EPOCH, before, bucket, edges
from controller_pipeline.transforms.lines import CONTROLLER, LOGS, RECORDER

_CUT: Final = "cut"  # sorts before the names of other marks at the same record
_SNAPSHOT: Final = (Kind.SNAPSHOT_STARTED.value, Kind.SNAPSHOT_ENDED.value)
_NEVER: Final = 2**63 - 1
"""The epoch after the last one."""

_MARKS: Final = columns(
    cluster_id=TEXT,
    controller_epoch=LONG,
    seq=LONG,
    event_time=TIME,
    mark=TEXT,
    seq_before=LONG,  # this and the following: of a cut, the last record before it
    time_before=TIME,
    was_resigned=FLAG,
)


def known_spans(events: DataFrame) -> DataFrame:
    """`schemas.KNOWN_SPANS`, of records that are there once each."""
    of = edges(events)
    marks = _cuts(events, of).unionByName(_snapshots(events)).unionByName(_ends(of))
    cluster = Window.partitionBy("cluster_id").orderBy("controller_epoch", "seq", "mark")
    so_far = cluster.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marks = marks.withColumns({
        "piece": f.sum((f.col("mark") == _CUT).cast(INT)).over(so_far),
        "mark_before": f.lag("mark").over(cluster),
        "mark_seq_before": f.lag("seq").over(cluster),
    })  # fmt: skip
    is_whole = (f.col("mark") == _SNAPSHOT[1]) & (f.col("mark_before") == _SNAPSHOT[0])
    snapshot = f.when(is_whole, f.struct("seq", f.col("mark_seq_before").alias("first_seq"), "event_time"))
    begin = f.when(
        f.col("mark") == _CUT,
        f.struct("controller_epoch", "seq", "event_time", "seq_before", "time_before", "was_resigned"),
    )
    pieces = marks.groupBy("cluster_id", "piece").agg(f.max(begin).alias("begin"), f.min(snapshot).alias("snapshot"))
    pieces = pieces.withColumn("next", f.lead("begin").over(Window.partitionBy("cluster_id").orderBy("piece")))
    return _spans(pieces, of)


def _spans(pieces: DataFrame, of: DataFrame) -> DataFrame:
    """A span for each piece that has a snapshot, or is of logs; times never run backwards within a cluster."""
    origin = (
        f.when(f.col("is_of_logs"), f.lit(LOGS))
        .when(f.col("is_recorded"), f.lit(RECORDER))
        .otherwise(f.lit(CONTROLLER))
    )
    who = of.groupBy(*EPOCH).agg(
        *(f.max(name).alias(name) for name in ("controller_id", "is_recorded", "is_of_logs"))
    ).withColumn("origin", origin)  # fmt: skip
    pieces = pieces.withColumn("controller_epoch", f.col("begin.controller_epoch"))
    mention = f.when(
        f.col("origin") == LOGS, f.struct("begin.seq", f.col("begin.seq").alias("first_seq"), "begin.event_time")
    )
    pieces = pieces.join(f.broadcast(who), [*EPOCH]).withColumn("snapshot", f.coalesce("snapshot", mention))
    pieces = pieces.where("snapshot is not null")
    cluster = Window.partitionBy("cluster_id").orderBy("piece")
    so_far = cluster.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = of.groupBy("cluster_id").agg(f.max("last_time").alias("history_ended"))
    spans = pieces.join(f.broadcast(whole), "cluster_id").withColumns({
        "span": (f.row_number().over(cluster) - 1).cast(LONG),
        "ended": f.max(f.greatest("snapshot.event_time", "next.time_before")).over(so_far),
    })  # fmt: skip
    spans = spans.withColumn("began", f.greatest("snapshot.event_time", f.lag("ended").over(cluster)))
    end = f.when(f.col("next.controller_epoch") != _NEVER, f.greatest("ended", "history_ended"))
    goes_on = f.lead("origin").over(cluster).eqNullSafe(f.lit(LOGS)) & (f.col("origin") == LOGS)
    goes_on &= f.lead("controller_epoch").over(cluster) == f.col("controller_epoch") + 1
    next_began = f.lead("began").over(cluster)
    spans = spans.withColumns({
        "known_again": f.coalesce(next_began, end),
        "ended": f.when(goes_on, next_began).otherwise(f.col("ended")),
    }).withColumns({
        "first_seq": f.col("snapshot.first_seq"),
        "snapshot_seq": f.col("snapshot.seq"),
        "last_seq": f.col("next.seq_before"),
        "ended_by": _ended_by(),
    })  # fmt: skip
    return spans.select(*KNOWN_SPANS.schema.fieldNames())


def _ended_by() -> Column:
    next_epoch = f.col("next.controller_epoch")
    return (
        f.when(f.col("next.was_resigned"), f.lit("resigned"))
        .when(next_epoch == _NEVER, f.lit("end"))
        .when(next_epoch == f.col("controller_epoch"), f.lit("gap"))
        .otherwise(f.lit("silence"))
    )


def _cuts(events: DataFrame, of: DataFrame) -> DataFrame:
    """The records before which something is missing, or begins; only buckets where that is so are looked into."""
    broken = f.broadcast(of.where("is_broken").select(*EPOCH, "bucket"))
    rows = events.select(*EPOCH, "seq", bucket().alias("bucket"), "event_time", "kind", "dropped")
    rows = before(rows.join(broken, [*EPOCH, "bucket"], "left_semi"), of)
    begins = f.col("kind").isin(*BREAKS) | f.col("is_first")
    inside = rows.where(begins | (f.col("seq") != f.col("seq_before") + 1))
    is_new = ~f.col("epoch_before").eqNullSafe(f.col("controller_epoch"))
    between = of.where(~f.col("is_broken") & (is_new | (f.col("first_seq") != f.col("seq_before") + 1)))
    return _marks(inside.withColumn("mark", f.lit(_CUT))).unionByName(
        _marks(between.withColumns({"mark": f.lit(_CUT), "seq": f.col("first_seq"), "event_time": f.col("first_time")}))
    )


def _snapshots(events: DataFrame) -> DataFrame:
    """Where snapshots begin and end."""
    rows = events.where(f.col("kind").isin(*_SNAPSHOT))
    nothing = {"seq_before": f.lit(None), "time_before": f.lit(None), "was_resigned": f.lit(None)}
    return _marks(rows.withColumns({"mark": f.col("kind"), **nothing}))


def _ends(of: DataFrame) -> DataFrame:
    """A cut after the last record of each cluster."""
    last = f.struct("controller_epoch", "bucket", "last_seq", "last_time", "is_resigned")
    rows = of.groupBy("cluster_id").agg(f.max(last).alias("last"))
    end = {
        "controller_epoch": f.lit(_NEVER),
        "seq": f.lit(0),
        "event_time": f.col("last.last_time"),
        "mark": f.lit(_CUT),
        "seq_before": f.col("last.last_seq"),
        "time_before": f.col("last.last_time"),
        "was_resigned": f.col("last.is_resigned"),
    }
    return _marks(rows.withColumns(end))


def _marks(rows: DataFrame) -> DataFrame:
    return rows.select(*(f.col(field.name).cast(field.dataType).alias(field.name) for field in _MARKS))
