"""A bad day for a cluster of six brokers in three racks, and the report about it.

`make demo-history` runs it. Brokers are killed and paused, partitions move, one partition gets an unclean leader, and
the controller is killed. Then `kontroller history` ingests the journal, audits it and writes the report, which opens in
a browser if there is one. The exit code is 1 if the history misses an event.
"""

import argparse
import os
import re
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder, run_folder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.demo.stage import Stage
from devcluster.demo.told import kontroller_history, rows_of
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import Part
from devcluster.running.processes import StartError, exit_on_sigterm

RACKS = ("a", "b", "c", "a", "b", "c")
GUARDED = {"min.insync.replicas": "2"}
UNGUARDED = {"unclean.leader.election.enable": "true"}
TOPICS: dict[str, tuple[list[list[int]], dict[str, str]]] = {
    "shop.orders": ([[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1], [6, 1, 2]], GUARDED),
    "shop.payments": ([[2, 3, 1], [3, 1, 2], [5, 4, 6], [6, 5, 4]], GUARDED),
    "web.clicks": ([[4, 6], [2, 5], [1, 3]], UNGUARDED),
    "audit.trail": ([[3, 5, 1], [5, 1, 3]], {}),
}
FOLLOWER_LAG_MS, SESSION_TIMEOUT_MS = 2_000, 6_000
PAUSES, PAUSE_S = 3, 4.0
"""Longer than a follower may lag behind, shorter than a broker's session with ZooKeeper."""
OBJECTIVE = "99"
"""Percent. The day is two minutes long and full of faults, so the objective is low."""
LOST_DATA = r"web\.clicks-0 (got a leader that was not in sync: data )?may be lost"
COMMAND_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The cluster that has the bad day, and the stage that prints it."""

    stage: Stage
    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes

    def await_recovery(self) -> None:
        self.stage.await_(self._is_well, "every replica is in sync")

    def _is_well(self) -> bool:
        present = {topic: self.znodes.partitions(topic) for topic in TOPICS}
        return all(self.znodes.is_served(topic, list(partitions)) for topic, partitions in present.items())


def main() -> int:
    """Run the day and report it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make demo-history", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("bad-day"), help="a folder for the report")
    output: Path = parser.parse_args().output.resolve()
    fill_cache([Part.KAFKA])
    stage = Stage()
    with exit_on_sigterm(), run_folder("bad-day") as folder:
        journal = folder.data("journal")
        with run_day(stage, folder, journal) as day:
            lose_a_broker(day)
            lose_a_rack(day)
            move_partitions(day)
            elect_uncleanly(day)
            pause_a_broker(day)
            lose_the_controller(day)
            delete_a_topic(day)
            day.controller.stop()
        tell(stage, journal, folder.data("history"), output)
    report = output / "index.html"
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(report.as_uri())
    return stage.close([f"The report of the day: {report.as_uri()}"])


@contextmanager
def run_day(stage: Stage, folder: RunFolder, journal: Path) -> Iterator[Day]:
    """Start six unmodified brokers, a controller that keeps a journal, and the topics."""
    stage.step(
        "Morning", "ZooKeeper, six Apache Kafka 3.9.1 brokers in three racks, and our controller with a journal."
    )
    settings = {
        "journal_directory": str(journal),
        "journal_alive_interval_seconds": 1,
        "journal_snapshot_interval_seconds": 10,
    }
    properties = {"replica.lag.time.max.ms": FOLLOWER_LAG_MS, "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS}
    with (
        ZooKeeper(folder) as zookeeper,
        KafkaCluster(folder, zookeeper, brokers=6, racks=RACKS, properties=properties) as kafka,
        ControllerProcess(folder, kafka.zookeeper_connect, settings=settings) as controller,
        zookeeper.client() as client,
    ):
        day = Day(stage=stage, kafka=kafka, controller=controller, znodes=ClusterZnodes(client))
        for topic, (replicas, config) in TOPICS.items():
            day.znodes.create_topic(topic, replicas, config)
        stage.say(f"{len(TOPICS)} topics: {', '.join(TOPICS)}")
        day.await_recovery()
        yield day


def lose_a_broker(day: Day) -> None:
    day.stage.step("Broker 2 is killed", "Its partitions get other leaders when its session with ZooKeeper ends.")
    day.kafka.broker(2).kill(ends_session=False)
    day.stage.await_(lambda: 2 not in leaders(day), "it leads nothing any more")
    day.kafka.broker(2).start()
    day.await_recovery()


def lose_a_rack(day: Day) -> None:
    day.stage.step(
        "Rack b goes: brokers 2 and 5", "Topics that need two in-sync replicas refuse writes where one is left."
    )
    for broker in (2, 5):
        day.kafka.broker(broker).kill(ends_session=False)
    day.stage.await_(lambda: not {2, 5} & leaders(day), "neither leads any more")
    for broker in (2, 5):
        day.kafka.broker(broker).start()
    day.await_recovery()


def move_partitions(day: Day) -> None:
    day.stage.step(
        "Three partitions of shop.orders move", "A reassignment, as kafka-reassign-partitions.sh asks for it."
    )
    targets = {("shop.orders", 0): [4, 5, 6], ("shop.orders", 1): [5, 6, 1], ("shop.orders", 2): [6, 1, 2]}
    day.znodes.reassign(targets)
    day.stage.await_(
        lambda: all(day.znodes.read_assignment(*partition) == target for partition, target in targets.items()),
        "they are where they should be",
    )
    day.await_recovery()


def elect_uncleanly(day: Day) -> None:
    day.stage.step(
        "web.clicks-0 loses both its replicas, and only the stale one returns",
        "The topic allows unclean leaders: availability, paid for with data.",
    )
    day.kafka.broker(6).kill(ends_session=False)
    day.stage.await_(lambda: day.znodes.isr("web.clicks", 0) == [4], "4 alone is in sync")
    day.kafka.broker(4).kill(ends_session=False)
    day.stage.await_(lambda: day.znodes.leader("web.clicks", 0) == -1, "nobody leads")
    day.kafka.broker(6).start()
    day.stage.await_(lambda: day.znodes.leader("web.clicks", 0) == 6, "6 leads, uncleanly")
    day.kafka.broker(4).start()
    day.await_recovery()


def pause_a_broker(day: Day) -> None:
    day.stage.step(
        "Broker 1 hangs again and again", "Too slow to stay in sync, too alive to be given up: a flapping replica."
    )
    for _ in range(PAUSES):
        day.kafka.broker(1).pause()
        try:
            time.sleep(PAUSE_S)  # the pause itself is the fault; there is no condition to wait for
        finally:
            day.kafka.broker(1).resume()
        day.await_recovery()


def lose_the_controller(day: Day) -> None:
    day.stage.step("The controller is killed", "Nobody records until it is back: the history calls that time unknown.")
    day.controller.kill()
    day.stage.await_(lambda: day.znodes.controller() in day.kafka.brokers, "a Kafka broker is the controller")
    day.controller.restart_whole()
    day.await_recovery()


def delete_a_topic(day: Day) -> None:
    day.stage.step("audit.trail is deleted", "Its partitions count as available until then, and not at all afterwards.")
    day.znodes.mark_for_deletion("audit.trail")
    day.stage.await_(lambda: not day.znodes.partitions("audit.trail"), "it is gone")


def leaders(day: Day) -> set[int]:
    return {day.znodes.leader(topic, partition) for topic in TOPICS for partition in day.znodes.partitions(topic)}


def tell(stage: Stage, journal: Path, history: Path, output: Path) -> None:
    """Build the history of the day, and expect the events that were caused."""
    stage.step("Evening", "The journal becomes a history; the history is audited and told.")
    run = partial(kontroller_history, stage, timeout_s=COMMAND_TIMEOUT_S)
    run("ingest", "--journal", str(journal), "--history", str(history))
    audited = run("audit", "--history", str(history))
    stage.expect(audited.returncode == 0, "the audit finds no violation of the controller's invariants")
    options = ("--objective", OBJECTIVE, "--broker-session-timeout-ms", str(SESSION_TIMEOUT_MS))
    run("report", "--history", str(history), "--output", str(output), *options)
    stage.expect((output / "index.html").exists(), "there is a report")
    unclean = _unclean(output)
    stage.expect(("web.clicks", 0, 6) in unclean, "it knows of the unclean leader")
    stage.expect({topic for topic, _, _ in unclean} == {"web.clicks"}, "and of none where that is not allowed")
    page = (output / "index.html").read_text(encoding="utf-8")
    stage.expect(re.search(LOST_DATA, page) is not None, "its page says in a sentence whose data may be lost")
    lost = {int(row["broker"]) for row in rows_of(output, "failovers") if row["moved"]}
    stage.expect({2, 5} <= lost, f"it knows the failovers, of brokers {sorted(lost)}")
    moved = [row for row in rows_of(output, "reassignments") if row["outcome"] == "done"]
    stage.expect(len(moved) == len(TOPICS["shop.orders"][0]) // 2, f"it knows {len(moved)} reassignments")
    flaps = sum(int(row["flaps"]) for row in rows_of(output, "isr_flaps_daily") if row["broker"] == 1)
    stage.expect(flaps >= PAUSES, f"it counts {flaps} times that broker 1 fell out of sync and came back")
    unknown_s = sum(float(row["unknown_seconds"]) for row in rows_of(output, "availability_daily"))
    stage.expect(unknown_s > 0, f"it calls {unknown_s:.0f} s of partitions' time unknown")


def _unclean(output: Path) -> set[tuple[str, int, int]]:
    return {(row["topic"], row["partition"], row["leader"]) for row in rows_of(output, "unclean_elections")}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BuildError, MissingToolError, StartError) as error:
        sys.exit(str(error))
