"""The image of the history: Spark as its user in a read-only file system, alone and as Spark on Kubernetes starts it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.images import Image as Name
from devcluster.images import image_archive
from devcluster.running.tokens import SPARK, machine_tokens
from tests.real.container import Image
from tests.spark.histories import random_cluster

pytestmark = [
    pytest.mark.real,
    # A first build makes all layers.
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="building images without an engine needs root"),
]

SUBMIT = "spark-submit --master 'local[2]' --driver-memory 1g --conf spark.driver.bindAddress=127.0.0.1"
COUNTING = """
import os
from kontroller.history.session import session

with session("count", cores=2, memory="1g") as spark:
    spark.range(1000).selectExpr("id % 7 AS rest").groupBy("rest").count().write.parquet("/tmp/counted")
    print(spark.read.parquet("/tmp/counted").count(), spark.sparkContext.master)
"""
READING = """
from kontroller.history.session import session
from kontroller.history.sources import kafka_topic

with session("read", cores=2, memory="1g") as spark:
    topic = spark.readStream.format("kafka").options(**{"subscribe": "t", "kafka.bootstrap.servers": "127.0.0.1:9"})
    print(*(name for name in topic.load().columns if name == "offset"), kafka_topic.connector_settings())
"""
OF_AN_EXECUTOR = {
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_MEMORY": "500m",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "pod",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_0": "-Dsaid=in two words",
    "SPARK_JAVA_OPT_1": "-XshowSettings:properties",
}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image, and tokens of this machine for the Spark of its containers."""
    built = Image(image_archive(Name.HISTORY), tmp_path_factory.mktemp("kontroller-history"))
    with machine_tokens().hold(SPARK):
        yield built


def run_script(image: Image, script: str, *arguments: str) -> str:
    """Return the output of a shell script in a container; fail with its standard error."""
    done = image.run("sh", "-ec", script, "sh", *arguments, timeout_s=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_stands_on_the_image_of_kontroller(image: Image, tmp_path: Path) -> None:
    kontroller = Image(image_archive(Name.KONTROLLER), tmp_path)
    assert image.diff_ids[: len(kontroller.diff_ids)] == kontroller.diff_ids
    assert image.layer_digests == image.diff_ids


def test_its_user_may_write_only_temporary_files_and_gets_no_other_privileges(image: Image) -> None:
    assert run_script(image, "id -u").strip() == "65532"
    paths = [path for path in image.root.rglob("*") if not path.is_symlink()]
    assert [path for path in paths if path.is_file() and path.stat().st_mode & 0o6000] == []
    open_to_all = {str(path.relative_to(image.root)) for path in paths if path.stat().st_mode & 0o002}
    assert open_to_all <= {"tmp", "var/tmp", "run/lock", "var/lock"}


def test_spark_works_with_nothing_writable_but_the_temporary_folder(image: Image) -> None:
    script = f'printf "%s" "$1" > /tmp/count.py && {SUBMIT} /tmp/count.py'
    assert run_script(image, script, COUNTING).split() == ["7", "local[2]"]


def test_what_spark_needs_to_read_from_kafka_is_among_its_jars(image: Image) -> None:
    script = f'printf "%s" "$1" > /tmp/read.py && {SUBMIT} /tmp/read.py'
    assert run_script(image, script, READING).split() == ["offset", "{}"]


def test_its_arguments_are_those_of_the_history(image: Image) -> None:
    (entrypoint,) = image.config["config"]["Entrypoint"]
    ended = image.run(entrypoint, "audit", "--history=/tmp/none", timeout_s=300)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "/tmp/none has no history: ingest a journal first" in ended.stderr


def test_a_journal_becomes_a_history_with_nothing_writable_but_the_temporary_folder(image: Image) -> None:
    (entrypoint,) = image.config["config"]["Entrypoint"]
    script = (
        'mkdir /tmp/journal && printf "%s" "$1" > /tmp/journal/segment.jsonl && '
        '"$2" ingest --journal=/tmp/journal --history=/tmp/history --memory=1g && '
        "find /tmp/history -path '*/partition_intervals/*.parquet'"
    )
    journal = b"".join(random_cluster(1, cluster_id="c", events=10).lines).decode()
    assert run_script(image, script, journal, entrypoint)


def test_a_driver_of_spark_on_kubernetes_runs_the_application_that_it_is_given(image: Image) -> None:
    script = (
        'printf "%s" "$1" > /tmp/count.py && echo spark.master=local[1] > /tmp/spark.properties && '
        "SPARK_DRIVER_BIND_ADDRESS=127.0.0.1 /opt/spark/entrypoint.sh driver "
        "--properties-file /tmp/spark.properties --class org.apache.spark.deploy.PythonRunner local:///tmp/count.py"
    )
    assert run_script(image, script, COUNTING).split() == ["7", "local[1]"]


def test_an_executor_of_spark_on_kubernetes_looks_for_its_driver(image: Image) -> None:
    variables = [f"{name}={value}" for name, value in OF_AN_EXECUTOR.items()]
    (entrypoint,) = image.config["config"]["Entrypoint"]
    ended = image.run("env", *variables, entrypoint, "executor", timeout_s=300)
    assert ended.returncode != 0
    assert "Failed to connect to /127.0.0.1:9" in ended.stderr
    assert "said = in two words" in ended.stderr
