"""ZooKeeper, three brokers and two of our controllers, each on its own machine, and clients that reach all of them
undisturbed.

The network between the machines loses, delays and drops packets. Brokers are registered by names, which each machine
has in its own file.
"""

import json
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.machines.network import Machine, Network
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_controlled_by, wait_until_served

log = structlog.get_logger()

FIRST, SECOND = 1000, 1001
ALL: Final = [1, 2, 3]
_MACHINES: Final = {FIRST: "first", SECOND: "second"}
_LOOK_EVERY_S: Final = 0.02
_SETTINGS: Final[dict[str, object]] = {
    "zookeeper_session_timeout_ms": 4000,
    "zookeeper_timeout_ms": 30_000,
    "request_timeout_ms": 3000,
    "admin_cidr": "10.91.0.0/24",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The servers that all tests share. The network faults are between the first controller and others."""

    network: Network
    kafka: KafkaCluster
    controllers: dict[int, ControllerProcess]
    znodes: ClusterZnodes
    journals: dict[int, Path]

    @property
    def first(self) -> Machine:
        return self.network[_MACHINES[FIRST]]

    @property
    def zookeeper(self) -> Machine:
        return self.network["zookeeper"]

    def broker(self, number: int) -> Machine:
        return self.network[f"broker-{number}"]

    def names(self, *, without: Collection[int] = ()) -> dict[str, str]:
        """Return the names of brokers, with their addresses."""
        return {name_of(number): self.broker(number).address for number in ALL if number not in without}

    def tell(self, names: dict[str, str]) -> None:
        """Set the brokers' addresses on all machines."""
        for machine in self.network.machines.values():
            machine.know(names)

    def holder(self) -> int | None:
        return self.znodes.controller()

    def give_role_to(self, process: int) -> None:
        wait_until(lambda: self.stands_by(process), f"{process} could lead")
        connect = self.kafka.zookeeper_connect
        done = run_command("controller", "take-over", "--zookeeper", connect, "--id", str(process), "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert self.holder() == process

    def stands_by(self, process: int) -> bool:
        """Return True if it could lead, or does."""
        said = self.znodes.read(f"/kontroller/processes/{process}")
        return said is not None and said["hindrance"] is None

    def create(self, topic: str, brokers: list[int]) -> None:
        self.znodes.create_topic(topic, [brokers], {"min.insync.replicas": str(min(2, len(brokers)))})

    def serve(self, topic: str, brokers: list[int]) -> None:
        self.create(topic, brokers)
        self.wait_until_served(topic)

    def wait_until_served(self, topic: str) -> None:
        """Wait until every replica is in sync and its broker has a log."""
        wait_until_served(self.znodes, topic, brokers=self.kafka.brokers)

    def read_log(self, process: int = FIRST, since: int = 0) -> str:
        return self.controllers[process].process.log_path.read_text(errors="replace")[since:]

    def epochs(self, process: int) -> set[int]:
        """Return the epochs in which a controller has decided anything, according to its journal."""
        lines = (line for file in self.journals[process].glob("*.jsonl") for line in file.read_text().splitlines())
        return {json.loads(line)["controller_epoch"] for line in lines if line.endswith("}")}


def name_of(broker: int) -> str:
    return f"broker-{broker}.test"


@contextmanager
def set_up(folder: RunFolder, name: str) -> Iterator[Stage]:
    """Start everything, with one of our controllers in the role.

    The name must be unique in the run folder. The caller and its clients are in the router's network.
    """
    with ExitStack() as started:
        network = started.enter_context(
            Network(folder, name, ["zookeeper", *(f"broker-{number}" for number in ALL), *_MACHINES.values()])
        )
        started.enter_context(network.router.enter())
        server = ZooKeeper(folder, name=f"{name}-zookeeper", heap_mb=256, place=network["zookeeper"].place())
        started.enter_context(server)
        places = [network[f"broker-{number}"].place(name_of(number)) for number in ALL]
        kafka = KafkaCluster(folder, server, chroot=f"/{name}", listeners=CLIENTS_APART, places=places)
        journals = {process: folder.data(f"{name}-journal-{process}") for process in _MACHINES}
        controllers = {
            process: ControllerProcess(
                folder,
                kafka.zookeeper_connect,
                controller_id=process,
                name=f"{name}-{machine}",
                listeners=CLIENTS_APART,
                settings={**_SETTINGS, "journal_directory": str(journals[process])},
                place=network[machine].place(),
            )
            for process, machine in _MACHINES.items()
        }
        with server.client() as client:
            client.ensure_path(f"/{name}")
        client = started.enter_context(open_client(kafka.zookeeper_connect))
        stage = Stage(
            network=network,
            kafka=kafka,
            controllers=controllers,
            znodes=ClusterZnodes(client),
            journals=journals,
        )
        stage.tell(stage.names())
        started.enter_context(kafka)
        for controller in controllers.values():
            started.callback(controller.close)
            controller.process.spawn()
        wait_until_controlled_by(stage.znodes, *controllers)
        yield stage


@dataclass(slots=True, kw_only=True)
class Vacancy:
    """The time without a controller, according to ZooKeeper."""

    seconds: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watch(self, stage: Stage) -> Iterator[None]:
        thread = threading.Thread(target=self._look, args=(stage,), name="vacancy")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _look(self, stage: Stage) -> None:
        before_s = time.monotonic()
        while not self._ended.wait(_LOOK_EVERY_S):
            is_vacant, now_s = stage.holder() is None, time.monotonic()
            self.seconds += (now_s - before_s) if is_vacant else 0.0
            before_s = now_s


@contextmanager
def run_under_load(stage: Stage, topic: str) -> Iterator[None]:
    """Produce to all brokers, and check that every acknowledged message can be read.

    Also check that no two controllers decided in one epoch, and that a new topic is served afterwards.
    """
    vacancy = Vacancy()
    stage.serve(topic, ALL)
    with nothing_lost(stage.kafka.bootstrap_servers, topic) as producer, vacancy.watch(stage):
        yield
        began_s = time.monotonic()
        stage.serve(f"{topic}-after", ALL)
        served_after_s = round(time.monotonic() - began_s, 1)
        stage.wait_until_served(topic)
    log.info(
        "disturbed",
        by=topic,
        without_controller_s=round(vacancy.seconds, 1),
        a_topic_is_served_after_s=served_after_s,
        longest_pause_of_load_s=round(producer.stop().longest_pause_s, 1),
    )
    assert stage.epochs(FIRST) & stage.epochs(SECOND) == set()
    assert not any("unexpected error" in stage.read_log(process) for process in stage.controllers)
