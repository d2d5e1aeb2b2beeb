"""The declared pipeline comes to what the batch comes to, from the same journals."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from controller_pipeline import schemas
from controller_pipeline.answers.all import answer_all
from controller_pipeline.session import SMALL_SETTINGS
from controller_pipeline.sources import journal_files
from controller_pipeline.transforms import layers
from controller_pipeline.transforms.config_intervals import config_intervals
from controller_pipeline.transforms.continuity.breaks import marks
from controller_pipeline.transforms.known_spans import known_spans
from devcluster.building.spark_jars import delta_jars
from tests.spark.histories import history, ingested

pytestmark = [pytest.mark.long, pytest.mark.matrix("long histories", "formats")]

PROJECT = Path(__file__).parents[3] / "controller_pipeline" / "pipelines" / "history"
COMPARED = (schemas.PARTITION_INTERVALS, schemas.BROKER_INTERVALS)
"""The layers that all answers are made of."""
_DRIVER = "spark.driver."
SETTINGS = {
    **{name: value for name, value in SMALL_SETTINGS.items() if not name.startswith(_DRIVER)},
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}
JAVA_OPTIONS = SMALL_SETTINGS["spark.driver.extraJavaOptions"]
"""It is started when the tool has not read the settings yet."""
IN_DELTA = schemas.EVENTS
LASTING_CATALOG = """
spark.sql.catalogImplementation hive
spark.hadoop.javax.jdo.option.ConnectionURL jdbc:derby:;databaseName={};create=true
"""
READ_BACK = "CREATE MATERIALIZED VIEW {0}_read USING parquet AS SELECT * FROM {0};\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the pipeline, as a user makes one, with two clusters' journals in the folder `journals`."""
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    spec = yaml.safe_load((PROJECT / "spark-pipeline.yml").read_text())
    own = {"spark.kontroller.journals": str(folder / "journals")}
    spec |= {"storage": (folder / "storage").as_uri(), "configuration": {**spec["configuration"], **SETTINGS, **own}}
    (folder / "spark-pipeline.yml").write_text(yaml.safe_dump(spec))
    for seed, cluster in enumerate(("quiet", "busy")):
        journal = folder / "journals" / cluster
        journal.mkdir(parents=True)
        (journal / "1-0.jsonl").write_bytes(b"".join(history(seed, cluster_id=cluster, events=40)))
    return folder


def keep_in(table_format: str, project: Path, *more: str) -> None:
    """Asks for a format of the tables; `more` are definitions besides the pipeline's own."""
    spec = yaml.safe_load((project / "spark-pipeline.yml").read_text())
    spec["configuration"]["spark.sql.sources.default"] = table_format
    spec["libraries"] += [{"glob": {"include": name}} for name in more]
    (project / "spark-pipeline.yml").write_text(yaml.safe_dump(spec))


def spark_pipelines(command: str, project: Path, *options: str, **variables: str) -> Sequence[str]:
    """What Spark's own tool prints. It starts `python`, and looks for Spark beside it."""
    environment = {
        **os.environ,
        **variables,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    spec = ["--spec", str(project / "spark-pipeline.yml")]
    line = ["spark-pipelines", command, *spec, *options, "--remote", "local[2]"]
    ended = subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return (ended.stdout + ended.stderr).splitlines()


@pytest.mark.timeout(900)
def test_the_declared_pipeline_comes_to_what_the_batch_comes_to(spark: SparkSession, project: Path) -> None:
    printed = spark_pipelines("run", project)
    assert any("COMPLETED" in line for line in printed)

    def kept(table: schemas.Table) -> DataFrame:
        return spark.read.schema(table.schema).parquet(str(project / "spark-warehouse" / table.name))

    events, findings = ingested(journal_files.lines(spark, [str(project / "journals")]))
    events = events.localCheckpoint()
    spans = known_spans(marks(events)).localCheckpoint()
    built = layers.derive(events, findings, marks(events), spans, config_intervals(events, spans).localCheckpoint())
    for table in COMPARED:
        assertDataFrameEqual(kept(table), built.of(table))
    answers = answer_all({table: kept(table) for table in (schemas.EVENTS, schemas.KNOWN_SPANS, *COMPARED)})
    for table in (schemas.AVAILABILITY, schemas.FAILOVERS):
        assertDataFrameEqual(kept(table), answers[table])


@pytest.mark.timeout(1500)
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
        events, _ = ingested(journal_files.lines(spark, [str(project / "journals")]))
        assertDataFrameEqual(spark.read.schema(IN_DELTA.schema).parquet(str(tables / f"{IN_DELTA.name}_read")), events)
        (project / "journals" / "busy" / "1-1.jsonl").write_bytes(later)


def use_delta(project: Path) -> None:
    """Has the tables up to the events kept in Delta, and a copy of these in Parquet, as this Spark has no Delta to read it
    with."""
    leave_out_what_follows_events(project)
    keep_in("delta", project, "read_back.sql")
    (project / "read_back.sql").write_text(READ_BACK.format(IN_DELTA.name))
    defaults = project / "delta" / "spark-defaults.conf"
    fetched = re.sub(r"(?m)^spark\.jars\.packages .*$", f"spark.jars {delta_jars()}", defaults.read_text())
    defaults.write_text(fetched + LASTING_CATALOG.format(project / "metastore"))


def leave_out_what_follows_events(project: Path) -> None:
    """Spark plans whatever is declared, also what a run does not refresh."""
    definitions = project / "definitions.py"
    until, found, _ = definitions.read_text().partition("@dp.temporary_view\ndef marks")
    assert found
    shorter = re.sub(r"(?m)^for _read in .*:$", 'for _read in ("lines", "checked"):', until)
    assert shorter != until
    definitions.write_text(shorter)


def take_half_away(journal: Path) -> bytes:
    """The second half of a segment, which it has no more."""
    (segment,) = journal.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[: len(lines) // 2]))
    return b"".join(lines[len(lines) // 2 :])


@pytest.mark.timeout(900)
def test_a_dry_run_finds_what_the_definitions_lack(project: Path) -> None:
    leave_out_what_follows_events(project)
    definitions = project / "definitions.py"
    definitions.write_text(definitions.read_text().replace('_dataset("records")', '_dataset("nowhere")'))
    with pytest.raises(AssertionError, match="nowhere"):
        spark_pipelines("dry-run", project)
