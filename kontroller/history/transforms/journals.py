"""Assigns records to clusters, and makes findings about journals."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.schemas import EVENTS, FINDINGS, LONG
from kontroller.history.transforms import lines


def find_writers(events: DataFrame) -> DataFrame:
    """Return each `cluster_id` and `journal`, and `is_recorded`: True if a record shows that a recorder wrote it."""
    return events.groupBy("cluster_id", "journal").agg(f.max(lines.is_recorders()).alias("is_recorded"))


def assign_clusters(events: DataFrame, named: DataFrame) -> DataFrame:
    """Return the records with their cluster. Those from before it had an id belong to the only cluster of their
    journal.

    The clusters of a journal may be known from earlier intake. `named` has the `cluster_id` of each `journal`, with any
    number of repetitions, so it may be the raw records."""
    rows = add_clusters(events, named).withColumn("cluster_id", f.col("of_cluster"))
    return rows.select(*EVENTS.schema.fieldNames())


def add_clusters(events: DataFrame, named: DataFrame) -> DataFrame:
    """Return the records unchanged, with their cluster in `of_cluster`."""
    known = named.where("cluster_id <> ''").groupBy("journal")
    only = known.agg(f.min("cluster_id").alias("only"), f.max("cluster_id").alias("last")).where("only = last")
    rows = events.join(f.broadcast(only.select("journal", "only")), "journal", "left")
    of_cluster = "if(cluster_id = '', coalesce(only, ''), cluster_id) as of_cluster"
    return rows.selectExpr(*events.columns, of_cluster)


def make_finding(rows: DataFrame, problem: str, count: Column, detail: Column) -> DataFrame:
    added = {
        "problem": f.lit(problem),
        "line": f.lit(None).cast(LONG),
        "count": count.cast(LONG),
        "detail": detail,
    }
    return rows.withColumns(added).select(
        *(f.col(field.name).cast(field.dataType).alias(field.name) for field in FINDINGS.schema)
    )
