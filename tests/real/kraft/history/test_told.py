"""The history of a cluster without ZooKeeper: its recorder's journal gives the same alarms, audit and report as a
controller's.
"""

import asyncio
import json
import re
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controller_core.client.admin_client import AdminClient
from controller_core.model.snapshot import PartitionSnapshot
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.demo.told import rows_of
from devcluster.filling.parts import Part
from devcluster.running.processes import ManagedProcess, wait_until
from tests.real.kraft.history.recordings import changes, recorder_of, wait_until_it_comes_to

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(900)]

COMMAND_TIMEOUT_S = 600
LEADERLESS_AFTER_S = 2
TOPICS = {"kept": "1:2,1:3", "alone": "3", "risky": "2:3"}
"""The replicas of each partition, by broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The results of the journal of an eventful day."""

    alarms: tuple[dict[str, Any], ...]
    ingested: str
    """The output of the ingestion."""
    audit_status: int
    report: Path


class Day:
    """A cluster that is recorded and watched, and its events."""

    def __init__(self, cluster: KRaftCluster, journal: Path, alarms: Path) -> None:
        self.cluster = cluster
        self.journal = journal
        self.alarms = alarms
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def happen(self) -> None:
        """Cause the events of the day.

        Broker 2 is lost, then 3, so that two topics have no live replica. A replica that was not in sync leads one of
        them, and 3 comes back. The quorum elects another leader. A partition moves.
        """
        for topic, replicas in TOPICS.items():
            configs = {"unclean.leader.election.enable": str(topic == "risky").lower()}
            asyncio.run(self.admin.create_topic(topic, replica_assignment=replicas, configs=configs))
        wait_until(self._are_all_known, "brokers know the topics")
        self._wait_until_all_in_sync()
        self.cluster.broker(2).kill()
        self._wait_for_state("risky", leader=3, isr=(3,))
        self.cluster.broker(3).kill()
        self._wait_for_state("alone", leader=None)
        wait_until(lambda: ("alone", "raised") in self._list_alarms(), "an alarm tells of it")
        self.cluster.broker(2).start()
        self._wait_for_state("risky", leader=2)
        self.cluster.broker(3).start()
        self._wait_until_all_in_sync()
        wait_until(lambda: ("alone", "cleared") in self._list_alarms(), "an alarm is over")
        self._elect_another_controller()
        moves = {"version": 1, "partitions": [{"topic": "kept", "partition": 0, "replicas": [1, 3]}]}
        asyncio.run(self.admin.reassign_partitions(json.dumps(moves)))
        self._wait_for_state("kept", leader=1, isr=(1, 3))
        wait_until_it_comes_to(self.journal, self.cluster)

    def _are_all_known(self) -> bool:
        """Return True if each broker knows the topics, because any of them may be asked."""
        asked = [AdminClient({"bootstrap.servers": broker.address}) for broker in self.cluster.brokers.values()]
        return all(set(asyncio.run(each.list_topics()).alive) >= set(TOPICS) for each in asked)

    def _list_alarms(self) -> set[tuple[str, str]]:
        return {(alarm["topic"], alarm["state"]) for alarm in alarms_in(self.alarms)}

    def _elect_another_controller(self) -> None:
        before = self._find_recorded_leader()
        self.cluster.controller(before).kill()
        wait_until(lambda: self._find_recorded_leader() != before, "another controller leads")
        self.cluster.controller(before).start()

    def _find_recorded_leader(self) -> int:
        return changes(self.journal)[-1].controller_id

    def _wait_for_state(self, topic: str, *, leader: int | None, isr: tuple[int, ...] | None = None) -> None:
        def is_so() -> bool:
            first = self._partitions(topic)[0]
            return first.leader == leader and isr in (None, tuple(sorted(first.isr)))

        wait_until(is_so, f"{topic}-0 is led by {leader}")

    def _wait_until_all_in_sync(self) -> None:
        def is_so() -> bool:
            return all(set(each.isr) == set(each.replicas) for topic in TOPICS for each in self._partitions(topic))

        wait_until(is_so, "everything is in sync")

    def _partitions(self, topic: str) -> tuple[PartitionSnapshot, ...]:
        return asyncio.run(self.admin.describe_topic(topic)).partitions


def alarms_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def told(servers_folder: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("told")
    journal, alarms, history, report = (folder / name for name in ("told", "alarms", "history", "report"))
    watch = ["history", "watch", f"--journal={journal}", f"--output={alarms}", "--silent-after-seconds=300"]
    watch.append(f"--leaderless-after-seconds={LEADERLESS_AFTER_S}")
    with ExitStack() as running:
        cluster = running.enter_context(KRaftCluster(servers_folder, name="told"))
        recorder = running.enter_context(recorder_of(cluster, servers_folder, journal))
        watching = ManagedProcess(
            "watch",
            [sys.executable, "-m", "kontroller", *watch],
            log_path=servers_folder.log("watch-told"),
            ready=lambda: True,
        )
        running.callback(watching.kill)
        watching.start()
        Day(cluster, journal, alarms).happen()
        recorder.process.stop()
        watching.stop()
    ingested = run_command(
        "history", "ingest", f"--journal={journal}", f"--history={history}", timeout_s=COMMAND_TIMEOUT_S
    )
    assert ingested.returncode == 0, ingested.stderr
    audited = run_command("history", "audit", f"--history={history}", timeout_s=COMMAND_TIMEOUT_S)
    reported = run_command(
        "history", "report", f"--history={history}", f"--output={report}", timeout_s=COMMAND_TIMEOUT_S
    )
    assert reported.returncode == 0, reported.stderr
    return Told(
        alarms=tuple(alarms_in(alarms)), ingested=ingested.stdout, audit_status=audited.returncode, report=report
    )


def test_the_history_comes_to_the_state_that_was_recorded(told: Told) -> None:
    proven = re.search(r"at (\d+) of (\d+) checksums", told.ingested)
    assert proven is not None, told.ingested
    assert proven[1] == proven[2] != "0"
    assert rows_of(told.report, "findings") == []


def test_the_audit_finds_no_violation(told: Told) -> None:
    assert told.audit_status == 0
    assert rows_of(told.report, "violations") == []


def test_alarms_tell_of_the_partition_that_nobody_led(told: Told) -> None:
    of_it = [alarm for alarm in told.alarms if (alarm["topic"], alarm["problem"]) == ("alone", "leaderless")]
    assert [alarm["state"] for alarm in of_it] == ["raised", "cleared"]


def test_the_report_knows_when_nobody_led(told: Told) -> None:
    leaderless_s: dict[str, float] = defaultdict(float)
    for row in rows_of(told.report, "availability_daily"):
        leaderless_s[row["topic"]] += float(row["leaderless_seconds"])
    assert leaderless_s["alone"] >= LEADERLESS_AFTER_S
    assert leaderless_s["risky"] > 0
    assert leaderless_s["kept"] == 0


def test_the_report_knows_who_was_lost_and_who_led_without_having_been_in_sync(told: Told) -> None:
    assert {row["broker"] for row in rows_of(told.report, "failovers") if row["cause"] == "broker_failed"} == {2, 3}
    unclean = {(row["topic"], row["partition"], row["leader"]) for row in rows_of(told.report, "unclean_elections")}
    assert unclean == {("risky", 0, 2)}


def test_the_report_knows_controllers_and_moves(told: Told) -> None:
    assert len({row["controller_epoch"] for row in rows_of(told.report, "controllers")}) == 2
    moved = [(row["topic"], row["partition"], row["outcome"]) for row in rows_of(told.report, "reassignments")]
    assert moved == [("kept", 0, "done")]
