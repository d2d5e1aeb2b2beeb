"""Journals as files: folders of segments, on this machine or wherever Hadoop's file systems reach (`s3a://`, `hdfs://`).

A folder, and each folder below it that has segments, is a journal: what one controller process or recorder wrote.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from controller_pipeline.schemas import LINES, LONG

SEGMENTS: Final = "*.jsonl{,.gz}"


def lines(spark: SparkSession, locations: Sequence[str]) -> DataFrame:
    """The lines of all segments below the folders, with where each stands (`schemas.LINES`).

    Lines are not numbered: files are read in parts, by several at a time; `seq` finds a record. Raises
    `pyspark.errors.AnalysisException` where a folder does not exist.
    """
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", SEGMENTS)
    rows = reader.text(list(locations)).withColumn("source", f.col("_metadata.file_path"))
    return rows.withColumns({"journal": journal_of("source"), "line": f.lit(None).cast(LONG)}).select(
        *LINES.fieldNames()
    )


def journal_of(source: str) -> Column:
    """The folder of a segment: the name of a column that has its file's."""
    file = f.substring_index(source, "/", -1)
    return f.left(f.col(source), f.length(source) - f.length(file) - 1)
