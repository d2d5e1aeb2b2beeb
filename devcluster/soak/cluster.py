"""The cluster of the soak, and the execution of each operation on it."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from rich.markup import escape

from devcluster.clients.load import AckedProducer
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder, run_folder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.demo.stage import Stage
from devcluster.running.processes import wait_until
from devcluster.running.servers import Server
from devcluster.soak.checks import Expected
from devcluster.soak.kafka_faults import find_undeleted_replicas
from devcluster.soak.operations import (
    CrashZooKeeper,
    KillServer,
    Operation,
    PauseServer,
    ResumeServer,
    ServerOperation,
    StartServer,
    StopServer,
)
from devcluster.soak.people import People
from devcluster.soak.requests import ControllerClient
from devcluster.soak.schedule import BROKER_SESSION_S, BROKERS, CONTROLLERS, LOADED_PARTITIONS, LOADED_TOPICS
from devcluster.soak.servers import Impossible, SoakServer, StandbyController
from devcluster.soak.snapshot import Snapshot, take_snapshot
from devcluster.soak.tally import Tally

_CONTROLLER_IDS: Final = {f"controller-{number}": 999 + number for number in CONTROLLERS}
_RATE_PER_S: Final = 60.0
_PROPERTIES: Final = {
    "zookeeper.session.timeout.ms": int(BROKER_SESSION_S * 1000),
    "log.segment.delete.delay.ms": 1000,
}


@dataclass(slots=True, kw_only=True)
class Soak:
    """The running servers. Operations run in parallel, but one after another on each server."""

    stage: Stage
    folder: RunFolder
    zookeeper: ZooKeeper
    kafka: KafkaCluster
    znodes: ClusterZnodes
    people: People
    servers: dict[str, SoakServer]
    producers: dict[str, AckedProducer] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    _crashing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _under_way: list[Future[None]] = field(default_factory=list)

    def perform(self, operation: Operation) -> None:
        """Perform the operation, or report why it is impossible now; returns at once."""
        match operation:
            case StopServer() | KillServer() | StartServer() | PauseServer() | ResumeServer():
                future = self.servers[operation.server].submit(partial(_operate, operation))
            case CrashZooKeeper():
                future = self._crashing.submit(self._crash_zookeeper, operation.down_s)
            case _:
                future = self.people.submit(operation)
        future.add_done_callback(partial(self._on_done, operation))
        self._under_way.append(future)

    def heal(self) -> None:
        """Wait until all operations have ended, and make every server run."""
        self._wait_for(self._under_way)
        self._under_way.clear()
        healing = [server.submit(SoakServer.heal) for server in self.servers.values()]
        self._wait_for(healing)
        for server, future in zip(self.servers.values(), healing, strict=True):
            if (error := future.exception()) is not None:
                self.stage.expect(False, f"{server.name} starts again: {error}")

    def deaths(self) -> list[str]:
        """Return the findings about servers that exited by themselves."""
        for server in self.servers.values():
            server.record_death()
        return [death for server in self.servers.values() for death in server.deaths]

    def snapshot(self) -> Snapshot:
        brokers = {
            number: (("127.0.0.1", broker.port), broker.log_folder) for number, broker in self.kafka.brokers.items()
        }
        return take_snapshot(self.znodes.client, brokers)

    def make_expected(self) -> Expected:
        return Expected(
            topics=dict(self.people.expected),
            deleted=set(self.people.unexpected),
            controllers=set(_CONTROLLER_IDS.values()),
            brokers=set(BROKERS),
            left_by_kafka=self.find_left_by_kafka,
        )

    def find_left_by_kafka(self) -> set[str]:
        """Return the log directories that Kafka's own controllers failed to delete by their own account."""
        left: set[str] = set()
        for broker in self.kafka.brokers.values():
            with broker.process.log_path.open(errors="replace") as log:
                left.update(find_undeleted_replicas(log))
        return left

    def journals(self) -> list[Path]:
        """Return the folders of the controllers' journals."""
        return [_journal(self.folder, name) for name in _CONTROLLER_IDS]

    def stop_controllers(self) -> None:
        """Stop the controllers gracefully, which completes their journals."""
        self._wait_for([self.servers[name].submit(SoakServer.stop) for name in _CONTROLLER_IDS])

    def controller_logs(self) -> list[Path]:
        return [self.servers[name].server.process.log_path for name in _CONTROLLER_IDS]

    def _wait_for(self, futures: list[Future[None]]) -> None:
        for future in futures:
            future.exception()

    def _on_done(self, operation: Operation, future: Future[None]) -> None:
        error = future.exception()
        if error is None:
            self.tally.record_done(operation)
            self.stage.say(f"{self.stage.elapsed_s:6.1f} s  {operation}")
        elif isinstance(error, Impossible):
            self.tally.record_skipped(operation)
            self.stage.say(f"{self.stage.elapsed_s:6.1f} s  [dim]{operation}: skipped, {escape(str(error))}[/]")
        else:
            self.stage.expect(False, escape(f"{operation}: {error!r}"))

    def _crash_zookeeper(self, down_s: float) -> None:
        self.zookeeper.kill()
        time.sleep(down_s)
        self.zookeeper.start()


def _operate(operation: ServerOperation, server: SoakServer) -> None:
    match operation:
        case StopServer():
            server.stop()
        case KillServer():
            server.kill()
        case StartServer():
            server.start()
        case PauseServer():
            server.pause()
        case ResumeServer():
            server.resume()
        case _:
            assert_never(operation)


def _journal(folder: RunFolder, controller: str) -> Path:
    return folder.data(f"journal-{controller}")


@contextmanager
def run_soak(stage: Stage, version: str) -> Iterator[Soak]:
    """Start everything with brokers of a version of Kafka, the producers last, and end it again.

    It ends even after a failed start or Ctrl-C.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder("soak"))
        brokers = f"six unmodified brokers of Kafka {version}"
        stage.step("Start", f"ZooKeeper, {brokers}, two controllers of ours. Logs: {folder.path / 'logs'}")
        zookeeper = stack.enter_context(ZooKeeper(folder))
        kafka = stack.enter_context(
            KafkaCluster(folder, zookeeper, brokers=len(BROKERS), properties=_PROPERTIES, version=version)
        )
        controllers = {
            name: stack.enter_context(
                StandbyController(
                    folder,
                    zookeeper.connect,
                    controller_id=controller_id,
                    name=name,
                    settings={"journal_directory": str(_journal(folder, name)), "zookeeper_session_timeout_ms": 4_000},
                )
            )
            for name, controller_id in _CONTROLLER_IDS.items()
        }
        znodes = ClusterZnodes(stack.enter_context(zookeeper.client()))
        wait_until(
            lambda: znodes.controller() in _CONTROLLER_IDS.values(),
            "ours is the controller",
        )
        servers: dict[str, Server] = {f"broker-{number}": broker for number, broker in kafka.brokers.items()}
        soak = Soak(
            stage=stage,
            folder=folder,
            zookeeper=zookeeper,
            kafka=kafka,
            znodes=znodes,
            people=People(znodes, _client(znodes, kafka, controllers)),
            servers={name: SoakServer(name, server) for name, server in (servers | controllers).items()},
        )
        stack.callback(soak.people.close)
        for server in soak.servers.values():
            stack.callback(server.close)
        _start_load(soak, stack)
        yield soak


def _client(
    znodes: ClusterZnodes, kafka: KafkaCluster, controllers: Mapping[str, StandbyController]
) -> ControllerClient:
    ports = {number: broker.port for number, broker in kafka.brokers.items()}
    ports |= {controller.controller_id: controller.port for controller in controllers.values()}
    return ControllerClient(
        controller=znodes.controller, addresses={number: ("127.0.0.1", port) for number, port in ports.items()}
    )


def _start_load(soak: Soak, stack: ExitStack) -> None:
    for index, topic in enumerate(LOADED_TOPICS):
        around = (*BROKERS, *BROKERS)
        replicas = [around[index + number : index + number + 3] for number in range(LOADED_PARTITIONS)]
        soak.znodes.create_topic(topic, replicas, {"min.insync.replicas": "2"})
        soak.people.expected[topic] = LOADED_PARTITIONS
    for topic in LOADED_TOPICS:
        wait_until(
            partial(soak.znodes.is_served, topic, range(LOADED_PARTITIONS)),
            f"every replica of {topic} is in sync",
        )
        producer = AckedProducer(soak.kafka.bootstrap_servers, topic, rate_per_s=_RATE_PER_S)
        soak.producers[topic] = stack.enter_context(producer)
