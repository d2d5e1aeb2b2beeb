"""Spark fetches exactly the versions that were tested."""

import re
from pathlib import Path

from devcluster.building.spark_jars import DELTA_FOLDER, HISTORY_FOLDER, S3_FOLDER
from kontroller.history.sources.kafka_topic import CONNECTOR

PIPELINE = Path(__file__).parents[3] / "kontroller" / "history" / "pipelines" / "history"
EXAMPLE = Path(__file__).parents[3] / "examples" / "history" / "spark-application.yaml"
DELTA_SETTINGS = PIPELINE / "delta" / "spark-defaults.conf"


def test_what_spark_fetches_by_itself_is_the_connector_that_the_image_has() -> None:
    _, name, version = CONNECTOR.split(":")
    assert f" {name}-{version}.jar\n" in (HISTORY_FOLDER / "jars.sha256").read_text()


def test_the_pipeline_in_delta_asks_spark_for_the_jar_that_was_tried() -> None:
    (package,) = re.findall(r"^spark\.jars\.packages\s+(\S+)$", DELTA_SETTINGS.read_text(), re.MULTILINE)
    _, name, version = package.split(":")
    assert f" {name}-{version}.jar\n" in (DELTA_FOLDER / "jars.sha256").read_text()


def test_the_example_asks_spark_for_the_module_of_s3_that_was_tried() -> None:
    (name, version) = re.findall(r"org\.apache\.hadoop:([\w-]+):([\w.]+)", EXAMPLE.read_text())[0]
    assert f" {name}-{version}.jar\n" in (S3_FOLDER / "jars.sha256").read_text()
