"""The logs of a real cluster of Kafka 3.9 with ZooKeeper, whose own controllers led it, as a history.

Three brokers, of which 3 and then 1 were the controller: broker 2 was killed and returned, leaders went back, a partition
moved, one was added, a leader was elected uncleanly, and a topic was deleted."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.audit.audit import audit
from kontroller.history.schemas import EVENTS, KNOWN_SPANS, PROOFS
from kontroller.history.sources import text_logs

SAMPLE = Path(__file__).parents[1] / "data" / "text_logs"
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings without code generation. Compiling the plan takes far longer than running it on these few rows."""
STRANGE = "\n".join(
    (
        "[2026-11-21 14:58:47,000] INFO [Controller id=1 epoch=2] Changed partition a-0 from NewPartition to "
        "OnlinePartition with state LeaderAndIsr{in words to come} (state.change.logger)",
        "[soon] INFO [Controller id=1 epoch=2] something (state.change.logger)",
        "java.io.IOException: a line that goes on",
    )
)
Logs = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Events, findings and violations; one file has lines that nobody can read."""
    folder = tmp_path_factory.mktemp("logs") / "sample"
    shutil.copytree(SAMPLE, folder)
    (folder / "broker-1" / "state-change.log.2026-11-21-15").write_text(STRANGE)
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    told, lines = text_logs.read(text_logs.lines(spark, [str(folder)]), cluster_id="old", time_zone="Europe/Berlin")
    events, findings = text_logs.number_records(told), text_logs.count_unreadable(lines)
    rows = events.orderBy("controller_epoch", "seq").collect()
    again = spark.createDataFrame(rows, EVENTS.schema)
    nothing = [spark.createDataFrame([], table.schema) for table in (KNOWN_SPANS, PROOFS)]
    found = rows, findings.collect(), audit(again, *nothing).collect()
    for name in INTERPRETED:
        spark.conf.unset(name)
    return found


def select_rows(logs: Logs, kind: str, **fields: object) -> list[Row]:
    return [row for row in logs[0] if row.kind == kind and all(row[name] == value for name, value in fields.items())]


def test_each_epoch_is_a_dense_sequence_in_the_order_of_time(logs: Logs) -> None:
    for epoch, controller in ((1, 3), (2, 1)):
        rows = [row for row in logs[0] if row.controller_epoch == epoch]
        assert [row.seq for row in rows] == list(range(len(rows)))
        assert [row.event_time for row in rows] == sorted(row.event_time for row in rows)
        assert rows[0].kind == "controller_elected"
        assert {row.controller_id for row in rows} == {controller}
    assert {(row.cluster_id, row.origin, row.inferred, row.snapshot) for row in logs[0]} == {
        ("old", "logs", True, False)
    }
    assert {row.journal.rsplit("/", 1)[1] for row in logs[0]} == {"broker-1", "broker-3"}
    assert {Path(row.source).name for row in logs[0] if row.controller_epoch == 1} == {
        "controller.log", "state-change.log", "state-change.log.2026-11-21-13.gz",
    }  # fmt: skip


def test_local_times_are_read_as_instants(logs: Logs) -> None:
    assert logs[0][0].event_time.timestamp() == datetime(2026, 11, 21, 13, 57, 57, 316_000, tzinfo=UTC).timestamp()


def test_a_failed_leader_and_its_cause_are_reported_once(logs: Logs) -> None:
    moved = select_rows(logs, "leadership", topic="orders", partition=0, leader=1, leader_epoch=1)
    assert [(row.isr, row.partition_epoch, row.cause, row.unclean) for row in moved] == [
        ([1, 3], 1, "broker_failed", False)
    ]
    gone = select_rows(logs, "broker_removed")[0]
    assert (gone.broker, gone.correlation_id) == (2, moved[0].correlation_id)


def test_a_reassignment_is_reported_step_by_step(logs: Logs) -> None:
    steps = select_rows(logs, "assignment", topic="pay.ments-1", partition=0)
    assert [(row.replicas, row.adding, row.removing) for row in steps] == [
        ([1, 2], [], []), ([3, 2, 1], [3], [1]), ([3, 2], [], []),
    ]  # fmt: skip
    assert select_rows(logs, "leadership", topic="pay.ments-1", partition=0, leader=3)[0].isr == [1, 2, 3]


def test_an_unclean_election_is_known_by_the_recovery_that_follows(logs: Logs) -> None:
    (elected,) = select_rows(logs, "leadership", unclean=True)
    assert (elected.topic, elected.leader, elected.isr, elected.leader_recovery_state) == ("unclean_t", 2, [2], 1)


def test_topics_and_brokers_are_known_by_their_ids_and_epochs(logs: Logs) -> None:
    assert [row.topic_id for row in select_rows(logs, "topic", topic="orders")] == [
        "df0e0db5-6193-4b5b-90be-2e72fbdfe89b"
    ]
    assert [row.broker_epoch for row in select_rows(logs, "broker", broker=2)] == [70, 122, 182]


def test_what_nobody_can_read_is_counted_for_each_folder(logs: Logs) -> None:
    (finding,) = logs[1]
    assert (finding["problem"], finding["count"]) == ("unreadable", 2)
    assert Path(finding.source).name == "broker-1"
    assert "LeaderAndIsr{in words to come}" in finding.detail


def test_the_audit_finds_nothing_in_what_kafka_did(logs: Logs) -> None:
    assert [(row.invariant, row.detail) for row in logs[2]] == []
