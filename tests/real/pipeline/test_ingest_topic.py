"""`kontroller history ingest` of the journal's topic on real brokers, killed in the middle: nothing lost, nothing
twice.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from controller_core.journal.segments import Block
from controller_core.journal.topic import TopicSink
from devcluster.building.spark_jars import kafka_jars
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.zookeeper import open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.generations.generation import write_of
from kontroller.history.kept_history import KeptHistory
from kontroller.history.pipelines.topic import checkpoint_of, ingest_topic
from kontroller.history.schemas import EVENTS, FINDINGS
from tests.real.conftest import StartKafka
from tests.spark.histories import history, make_events

TOPIC = "controller-journal"
DEADLINE_S = 600
NO_RECORD = b"no record of a journal\n"


class Ingest:
    """The command, run repeatedly on one history."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._log = folder / "ingest.log"
        what = ["--topic", TOPIC, "--bootstrap-server", bootstrap, "--jars", kafka_jars(), "--memory", "1g"]
        self._command = [sys.executable, "-m", "kontroller", "history", "ingest", *what]
        self._command += ["--history", str(folder / "history")]

    def run(self) -> str:
        """Run it to its end, and return its output."""
        ended = subprocess.run(self._command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def kill_when(self, condition: Callable[[], bool], what: str) -> None:
        """Kill Python and Java at once, with SIGKILL, when the condition is true."""
        with self._log.open("ab") as log, subprocess.Popen(
            self._command, stdout=log, stderr=log, start_new_session=True
        ) as running:  # fmt: skip
            try:
                wait_until(lambda: condition() or running.poll() is not None, what, silence_s=DEADLINE_S)
                assert running.poll() is None, self._log.read_text()
            finally:
                os.killpg(running.pid, signal.SIGKILL)


def produce(bootstrap: str, lines: Sequence[bytes]) -> None:
    TopicSink(TOPIC, bootstrap).write(Block(cluster_id="c", epoch=1, first_seq=0, data=b"".join(lines)))


@pytest.mark.real
@pytest.mark.timeout(3000)
def test_an_ingest_that_is_killed_loses_nothing_and_takes_nothing_in_twice(
    start_kafka: StartKafka, spark_with_connectors: SparkSession, tmp_path: Path
) -> None:
    bootstrap = start_kafka_with_topic(start_kafka)
    records = history(7, cluster_id="c", events=60)
    half = len(records) // 2
    kept = KeptHistory.open_history(spark_with_connectors, str(tmp_path / "history"))
    noted = Path(checkpoint_of(kept, TOPIC, bootstrap))
    ingest = Ingest(tmp_path, bootstrap)

    def is_written_only() -> bool:
        """Return True if records are written completely, but are not in the history yet."""
        kept_parts = {write_of(part) for part in kept.raw.at_present.parts.get(RAW_EVENTS.name, ())}
        return any(path.parent.name not in kept_parts for path in Path(kept.raw.path(RAW_EVENTS)).glob("*/_SUCCESS"))

    produce(bootstrap, [*records[: half + 20], NO_RECORD])
    ingest.kill_when(is_written_only, "a batch is written, and not in its place")
    assert not (noted / "commits" / "0").exists()
    ingest.kill_when((noted / "commits" / "0").exists, "it is in its place, and tables are made of it")
    produce(bootstrap, records[half - 20 :])
    ingest.kill_when(is_written_only, "the next batch is written, and not in its place")
    assert "of 1 cluster" in ingest.run()

    once = make_events(spark_with_connectors, records)
    told = [name for name in EVENTS.schema.fieldNames() if name not in ("source", "journal")]
    assertDataFrameEqual(kept.store.read(EVENTS).select(told), once.select(told))
    unreadable = kept.store.read(FINDINGS).where("problem <> 'gap'").collect()
    assert [(row.problem, row["count"], row.line) for row in unreadable] == [("unreadable", 1, half + 20)]
    raw = kept.raw.read(RAW_EVENTS).count()
    produce(bootstrap, records[:10])
    ingest_topic(kept, TOPIC, bootstrap)
    assert kept.raw.read(RAW_EVENTS).count() == raw


def start_kafka_with_topic(start_kafka: StartKafka) -> str:
    """Start a broker with the topic, and return its address."""
    kafka = start_kafka(brokers=1)
    with open_client(kafka.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        serve_topic(znodes, TOPIC, [[1]])
    return kafka.bootstrap_servers
