"""Tables are written to be the same bytes each time, as a whole or day by day."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from controller_pipeline.schemas import KNOWN_SPANS, TEXT, TIME, Table, columns
from controller_pipeline.store import Store

VISITS = Table(name="visits", schema=columns(cluster_id=TEXT, who=TEXT, at=TIME), order=("at", "who"), by_day="at")


def visits(spark: SparkSession, *days: int) -> DataFrame:
    rows = [("c", who, datetime(2026, 1, day, 12, tzinfo=UTC)) for day in days for who in ("b", "a")]
    return spark.createDataFrame(rows, VISITS.schema)


def digests(folder: Path) -> dict[str, str]:
    """Of each folder's data; Spark gives the files new names each time."""
    return {
        str(path.parent.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.parquet")
    }


def test_the_rerun_of_a_day_gives_the_same_bytes_and_leaves_the_others_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark=spark, location=str(tmp_path))
    store.write(VISITS, visits(spark, 1, 2))
    first = digests(tmp_path)
    assert len(first) == 2
    store.write_days(VISITS, visits(spark, 2).repartition(2, "who"))
    assert digests(tmp_path) == first
    assert store.read(VISITS).count() == 4


def test_a_table_that_is_written_anew_has_nothing_of_before(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark=spark, location=str(tmp_path))
    row = ("c", 0, 1, 1000, "controller", 0, 4, 9, None, None, "end", None)
    store.write(KNOWN_SPANS, spark.createDataFrame([row, row], KNOWN_SPANS.schema))
    store.write(KNOWN_SPANS, spark.createDataFrame([row], KNOWN_SPANS.schema))
    assert store.read(KNOWN_SPANS).count() == 1
    store.write(VISITS, visits(spark, 1, 2))
    store.write(VISITS, visits(spark, 2))
    assert store.read(VISITS).count() == 2


def test_a_table_that_was_never_written_is_empty_or_an_error_and_not_whole(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark=spark, location=str(tmp_path))
    store.remove(VISITS)
    assert not store.is_whole(VISITS)
    assert store.read_if_kept(VISITS).count() == 0
    with pytest.raises(AnalysisException):
        store.read(VISITS)
    store.write(VISITS, visits(spark, 1))
    assert store.is_whole(VISITS)
    store.remove(VISITS)
    assert not (tmp_path / "visits").exists()


def test_times_are_kept_as_other_programs_read_them_and_as_days_can_be_skipped_by(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark=spark, location=str(tmp_path))
    store.write(VISITS, visits(spark, 1))
    (path,) = tmp_path.rglob("*.parquet")
    kept = pyarrow.parquet.ParquetFile(path)
    assert kept.schema_arrow.field("at").type == pyarrow.timestamp("us", tz="UTC")
    statistics = kept.metadata.row_group(0).column(kept.schema_arrow.names.index("at")).statistics
    assert statistics.min == datetime(2026, 1, 1, 12, tzinfo=UTC)
