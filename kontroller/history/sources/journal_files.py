"""Journals as files: folders of segments, on this machine or wherever Hadoop's file systems reach (`s3a://`, `hdfs://`).

A folder, and each folder below it that has segments, is a journal: what one controller process or recorder wrote.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.schemas import LONG

SEGMENTS: Final = "*.jsonl{,.gz}"


def lines(spark: SparkSession, locations: Sequence[str]) -> DataFrame:
    """The lines of all segments below the folders, with where each stands (`schemas.LINES`).

    Lines are not numbered: files are read in parts, by several at a time; `seq` finds a record. Raises
    `pyspark.errors.AnalysisException` where a folder does not exist.
    """
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", SEGMENTS)
    return lines_of(reader.text(list(locations)))


def lines_of(rows: DataFrame) -> DataFrame:
    """What Spark read from segments, at once or as a stream, as `schemas.LINES`."""
    rows = rows.select("value", f.col("_metadata.file_path").alias("source"))
    return rows.select("value", "source", journal_of("source").alias("journal"), f.lit(None).cast(LONG).alias("line"))


def journal_of(source: str) -> Column:
    """The folder of a file, which the column `source` names. By bytes, as characters would have to be counted each time."""
    file = f.substring_index(source, "/", -1)
    length = f.octet_length(source) - f.octet_length(file) - 1
    return f.substring(f.col(source).cast("binary"), f.lit(1), length).cast("string")
