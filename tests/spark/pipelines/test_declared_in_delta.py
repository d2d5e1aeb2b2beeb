"""The declared pipeline keeps its tables in Delta Lake, too, and adds to them in later runs."""

import re
from pathlib import Path

import yaml
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from devcluster.building.spark_jars import delta_jars
from kontroller.history import schemas
from kontroller.history.sources import journal_files
from tests.spark.histories import ingest_lines
from tests.spark.pipelines.declared import leave_out_what_follows_events, spark_pipelines

IN_DELTA = schemas.EVENTS
LASTING_CATALOG = """
spark.sql.catalogImplementation hive
spark.hadoop.javax.jdo.option.ConnectionURL jdbc:derby:;databaseName={};create=true
"""
READ_BACK = "CREATE MATERIALIZED VIEW {0}_read USING parquet AS SELECT * FROM {0};\n"


def test_tables_in_delta_hold_what_the_batch_comes_to_also_after_a_second_run(
    spark: SparkSession, project: Path
) -> None:
    use_delta(project)
    later = take_half_away(project / "journals" / "busy")
    wanted = ["lines", "checked", IN_DELTA.name, f"{IN_DELTA.name}_read"]
    for _ in range(2):
        spark_pipelines("run", project, "--refresh", ",".join(wanted), SPARK_CONF_DIR=str(project / "delta"))
        tables = project / "spark-warehouse"
        for name in ("lines", IN_DELTA.name):
            assert list((tables / name / "_delta_log").glob("*.json")), name
        events, _ = ingest_lines(journal_files.lines(spark, [str(project / "journals")]))
        assertDataFrameEqual(spark.read.schema(IN_DELTA.schema).parquet(str(tables / f"{IN_DELTA.name}_read")), events)
        (project / "journals" / "busy" / "1-1.jsonl").write_bytes(later)


def use_delta(project: Path) -> None:
    """Keep the tables up to the events in Delta, and copy these to Parquet, because this Spark has no Delta to read it
    with."""
    leave_out_what_follows_events(project)
    keep_in("delta", project, "read_back.sql")
    (project / "read_back.sql").write_text(READ_BACK.format(IN_DELTA.name))
    defaults = project / "delta" / "spark-defaults.conf"
    fetched = re.sub(r"(?m)^spark\.jars\.packages .*$", f"spark.jars {delta_jars()}", defaults.read_text())
    defaults.write_text(fetched + LASTING_CATALOG.format(project / "metastore"))


def keep_in(table_format: str, project: Path, *more: str) -> None:
    """Asks for a format of the tables; `more` are definitions besides the pipeline's own."""
    spec = yaml.safe_load((project / "spark-pipeline.yml").read_text())
    spec["configuration"]["spark.sql.sources.default"] = table_format
    spec["libraries"] += [{"glob": {"include": name}} for name in more]
    (project / "spark-pipeline.yml").write_text(yaml.safe_dump(spec))


def take_half_away(journal: Path) -> bytes:
    """The second half of a segment, which it has no more."""
    (segment,) = journal.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[: len(lines) // 2]))
    return b"".join(lines[len(lines) // 2 :])
