"""A copy of the declared pipeline, as a user makes one, and Spark's own tool that runs it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark
import yaml

from devcluster.building.cache import hold_lock
from kontroller.history.session import SMALL_SETTINGS
from tests.spark.histories import history

PROJECT = Path(__file__).parents[3] / "kontroller" / "history" / "pipelines" / "history"
_DRIVER = "spark.driver."
SETTINGS = {
    **{name: value for name, value in SMALL_SETTINGS.items() if not name.startswith(_DRIVER)},
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}
JAVA_OPTIONS = SMALL_SETTINGS["spark.driver.extraJavaOptions"]
"""The options of Java, because the tool starts it before it reads the settings."""


def project_with_journals(folder: Path) -> Path:
    """A copy of the pipeline with two clusters' journals in the folder `journals`."""
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


def spark_pipelines(command: str, project: Path, *options: str, **variables: str) -> Sequence[str]:
    """Run Spark's own tool and return its output. The tool starts `python`, and looks for Spark next to it."""
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
    # Its server has a fixed port.
    with hold_lock("spark-connect", "Waiting for another run with a server of Spark Connect"):
        ended = subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return (ended.stdout + ended.stderr).splitlines()


def leave_out_what_follows_events(project: Path) -> None:
    """Remove the tables that follow from the events. Spark plans everything that is declared, even if a run does not
    refresh it."""
    definitions = project / "definitions.py"
    until, found, _ = definitions.read_text().partition("@dp.temporary_view\ndef marks")
    assert found
    shorter = re.sub(r"(?m)^for _read in .*:$", 'for _read in ("lines", "checked"):', until)
    assert shorter != until
    definitions.write_text(shorter)
