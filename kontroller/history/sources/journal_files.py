"""Journals as files: folders of segments, on this machine or on Hadoop's file systems (`s3a://`, `hdfs://`).

A folder with segments is a journal: the records of one controller process or recorder. Folders below it are searched
too.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.schemas import LONG
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.local_files import limit_lines

SEGMENTS: Final = "*.jsonl{,.gz}"
SEGMENT_NAMES: Final = ("*.jsonl", "*.jsonl.gz")


def lines(spark: SparkSession, locations: Sequence[str], caps: Caps | None = None) -> DataFrame:
    """Return the lines of all segments below the folders, with their places (`schemas.LINES`).

    Lines above the cap are skipped. Lines are not numbered, because several tasks read parts of one file; `seq`
    identifies a record. Raises `pyspark.errors.AnalysisException` if a folder does not exist.
    """
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", SEGMENTS)
    reader = reader.options(**limit_lines(caps))
    return lines_of(reader.text(list(locations)))


def lines_of(rows: DataFrame) -> DataFrame:
    """Convert rows that Spark read from segments, at once or as a stream, to `schemas.LINES`."""
    rows = rows.select("value", f.col("_metadata.file_path").alias("source"))
    return rows.select("value", "source", journal_of("source").alias("journal"), f.lit(None).cast(LONG).alias("line"))


def journal_of(source: str) -> Column:
    """Return the folder of the file that the column `source` names.

    It works on bytes, because Spark would count characters in each row."""
    file = f.substring_index(source, "/", -1)
    length = f.octet_length(source) - f.octet_length(file) - 1
    return f.substring(f.col(source).cast("binary"), f.lit(1), length).cast("string")
