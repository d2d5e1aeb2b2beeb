"""A fleet of real clusters, a few at a time, and one report of all of them.

`make demo-fleet` runs it. Each cluster is a ZooKeeper with a small heap, two unmodified brokers, a Kontroller that
keeps a journal, and three topics. The clusters run in waves: in each cluster a broker is killed or stopped and comes
back, in some the controller is killed. A wave ends before the next one begins, so twenty clusters need the memory of
five. Their journals become one history, which is audited and reported on one page. The exit code is 1 if the page
misses an event.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

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
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm

TOPICS: Final = {
    "orders": ([[1, 2], [2, 1], [1, 2], [2, 1]], {"min.insync.replicas": "2"}),
    "clicks": ([[2, 1], [1, 2]], {}),
    "alone": ([[2], [1]], {}),
}
SESSION_TIMEOUT_MS: Final = 6_000
COMMAND_TIMEOUT_S: Final = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A cluster of the fleet."""

    number: int
    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes

    @property
    def is_crashed(self) -> bool:
        """True if broker 2 of the cluster is killed; otherwise it is stopped."""
        return self.number % 2 == 0

    @property
    def loses_its_controller(self) -> bool:
        return self.number % 5 == 4

    def is_well(self) -> bool:
        return all(
            self.znodes.is_served(topic, list(partitions))
            for topic in TOPICS
            if (partitions := self.znodes.partitions(topic))
        )

    def has_moved(self) -> bool:
        """Return True if broker 2 leads nothing. A partition without another replica then has no leader."""
        return all(
            self.znodes.leader(topic, number) != 2 for topic in TOPICS for number in self.znodes.partitions(topic)
        )


def main() -> int:
    """Run the waves and report them; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make demo-fleet", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=5, help="number of clusters that run side by side")
    parser.add_argument("--output", type=Path, default=Path("fleet"), help="a folder for the report")
    arguments = parser.parse_args()
    output: Path = arguments.output.resolve()
    fill_cache([Part.KAFKA])
    stage = Stage()
    with exit_on_sigterm(), run_folder("fleet") as folder:
        journals = folder.data("journals")
        for first in range(0, arguments.clusters, arguments.at_once):
            numbers = range(first, min(first + arguments.at_once, arguments.clusters))
            with wave(stage, folder, journals, numbers) as members:
                live(stage, members)
        tell(stage, journals, folder.data("history"), output, arguments.clusters)
    return stage.close([f"The report of the fleet: {(output / 'index.html').as_uri()}"])


@contextmanager
def wave(stage: Stage, folder: RunFolder, journals: Path, numbers: Sequence[int]) -> Iterator[list[Member]]:
    """Run clusters side by side until the block ends, for whatever reason."""
    stage.step(
        f"Clusters {numbers[0] + 1} to {numbers[-1] + 1}",
        "Each: a ZooKeeper, two brokers, a controller with a journal.",
    )
    with ExitStack() as running:
        members = [_begin_member(running, folder, journals, number) for number in numbers]
        for member in members:
            for broker in member.kafka.brokers.values():
                broker.wait_until_ready()
        for member in members:
            running.enter_context(member.controller)
            for topic, (replicas, config) in TOPICS.items():
                member.znodes.create_topic(topic, replicas, config)
        await_all(stage, members, Member.is_well, "every replica is in sync")
        yield members


def _begin_member(running: ExitStack, folder: RunFolder, journals: Path, number: int) -> Member:
    """Start a cluster's ZooKeeper, and begin to start its brokers."""
    name = f"cluster-{number + 1}"
    zookeeper = running.enter_context(ZooKeeper(folder, name=f"{name}-zookeeper", heap_mb=64))
    properties = {"replica.lag.time.max.ms": 5_000, "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS}
    kafka = KafkaCluster(folder, zookeeper, brokers=2, properties=properties, name=name)
    running.callback(kafka.close)
    for broker in kafka.brokers.values():
        broker.spawn()
    settings = {"journal_directory": str(journals / name), "journal_alive_interval_seconds": 1}
    controller = ControllerProcess(folder, kafka.zookeeper_connect, name=f"{name}-controller", settings=settings)
    znodes = ClusterZnodes(running.enter_context(zookeeper.client()))
    return Member(number=number, kafka=kafka, controller=controller, znodes=znodes)


def live(stage: Stage, members: Sequence[Member]) -> None:
    """Cause the faults in each cluster of a wave, and wait for its recovery."""
    for member in members:
        broker = member.kafka.broker(2)
        broker.kill(ends_session=False) if member.is_crashed else broker.stop()
    await_all(stage, members, Member.has_moved, "broker 2 of each, killed or stopped, leads nothing any more")
    for member in members:
        member.kafka.broker(2).spawn()
    for member in members:
        member.kafka.broker(2).wait_until_ready()
    await_all(stage, members, Member.is_well, "it is back, and every replica in sync")
    for member in members:
        if member.loses_its_controller:
            member.controller.restart_whole()
            stage.say(f"the controller of cluster {member.number + 1} was killed, and is back")
    for member in members:
        member.controller.stop()  # which writes the end of its journal


def await_all(stage: Stage, members: Sequence[Member], is_so: Callable[[Member], bool], what: str) -> None:
    """Wait until the condition is true of each cluster. Raises ConditionTimeoutError."""
    stage.await_(lambda: all(is_so(member) for member in members), what)


def tell(stage: Stage, journals: Path, history: Path, output: Path, clusters: int) -> None:
    """Build one history and one page of all clusters, and expect the events that were caused."""
    stage.step("The history of them all", "All journals go into one history, which is audited and told on one page.")
    run = partial(kontroller_history, stage, timeout_s=COMMAND_TIMEOUT_S)
    run("ingest", "--journal", str(journals), "--history", str(history))
    audited = run("audit", "--history", str(history))
    stage.expect(audited.returncode == 0, "the audit finds no violation of the controllers' invariants")
    timeout = ("--broker-session-timeout-ms", str(SESSION_TIMEOUT_MS))
    run("report", "--history", str(history), "--output", str(output), *timeout)
    page = (output / "index.html").read_text(encoding="utf-8")
    stage.expect(f"of {clusters} clusters need" in page, f"the page is of {clusters} clusters")
    lost = {row["cluster_id"] for row in rows_of(output, "failovers") if row["broker"] == 2}
    stage.expect(len(lost) == clusters, f"it knows that {len(lost)} of them lost a broker")
    elected = [row["cluster_id"] for row in rows_of(output, "controllers")]
    again = len(elected) - len(set(elected))
    stage.expect(again == len(range(4, clusters, 5)), f"it knows {again} further terms of controllers")
    mib = sum(path.stat().st_size for path in journals.rglob("*.jsonl")) / 2**20
    stage.say(f"{mib:.1f} MiB of journals, a page of {len(page) / 1000:.0f} kB")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BuildError, MissingToolError, StartError, ConditionTimeoutError) as error:
        sys.exit(str(error))
