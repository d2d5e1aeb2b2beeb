"""Three ZooKeeper servers under three brokers, two controllers and load: servers stop, hang and come back.

One of the controllers hears nothing from any of them. The tests run in plain text, and with TLS, certificates and
logins. Every acknowledged message is read back. The time until a topic can be created is logged, and never asserted.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
import structlog
from kazoo.exceptions import KazooException

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.ensemble import ZooKeeperEnsemble
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from devcluster.running.ways import Silence, Way
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_ended
from tests.real.controller.role.ensembles import Servers, start_plain, start_with_tls

log = structlog.get_logger()
FIRST, SECOND = 1000, 1001
ALL = [1, 2, 3]
SESSION_S = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The servers that all of these tests share. The first controller's ways to ZooKeeper can fall silent."""

    ensemble: ZooKeeperEnsemble
    kafka: KafkaCluster
    controllers: dict[int, ControllerProcess]
    ways: list[Way]
    znodes: ClusterZnodes

    def holder(self) -> int | None:
        try:
            return self.znodes.controller()
        except KazooException:
            return None  # this test's own client has no server at present

    def is_led_by_ours(self) -> bool:
        return self.holder() in self.controllers

    def give_role_to(self, process: int) -> None:
        arguments = [
            "--zookeeper",
            self.kafka.zookeeper_connect,
            "--id",
            str(process),
            "--yes",
            "--timeout-ms",
            "40000",
        ]
        wait_until(lambda: self._is_ready(process), f"{process} could lead")
        done = run_command("controller", "take-over", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    def serve_topic(self, topic: str) -> None:
        """Create a topic as soon as ZooKeeper answers, and wait until all replicas follow."""
        wait_until(lambda: self._is_created(topic), "ZooKeeper takes a topic")
        wait_until(lambda: self._is_served(topic), f"{topic} is served")

    def _is_created(self, topic: str) -> bool:
        try:
            if self.znodes.client.exists(f"/brokers/topics/{topic}") is None:
                self.znodes.create_topic(topic, [ALL], {"min.insync.replicas": "2"})
        except KazooException:
            return False
        return True

    def _is_served(self, topic: str) -> bool:
        try:
            return self.znodes.is_served(topic, [0])
        except KazooException:
            return False

    def _is_ready(self, process: int) -> bool:
        try:
            said = self.znodes.read(f"/kontroller/processes/{process}")
        except KazooException:
            return False
        return said is not None and said["hindrance"] is None


@pytest.fixture(scope="module", params=[start_plain, start_with_tls])
def stage(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[Stage]:
    with ExitStack() as started:
        servers: Servers = request.param(servers_folder)
        name, chroot = servers.name, f"/{servers.name}"
        ensemble = started.enter_context(servers.ensemble)
        kafka = KafkaCluster(
            servers_folder, ensemble, chroot=chroot, properties=servers.broker_properties, env=servers.broker_env
        )
        started.enter_context(kafka)
        ways = [started.enter_context(Way(port)) for port in servers.ports]
        over_ways = ",".join(way.connect for way in ways) + chroot
        settings: dict[str, object] = {
            "zookeeper_session_timeout_ms": SESSION_S * 1000,
            "zookeeper_timeout_ms": 10_000,
            **servers.settings,
        }
        controllers = {
            FIRST: ControllerProcess(servers_folder, over_ways, name=f"{name}-first", settings=settings),
            SECOND: ControllerProcess(
                servers_folder,
                servers.connect + chroot,
                controller_id=SECOND,
                name=f"{name}-second",
                settings=settings,
            ),
        }
        for controller in controllers.values():
            started.callback(controller.close)
            controller.process.spawn()
        client = started.enter_context(ensemble.client(chroot))
        stage = Stage(ensemble=ensemble, kafka=kafka, controllers=controllers, ways=ways, znodes=ClusterZnodes(client))
        wait_until(stage.is_led_by_ours, "one of ours leads")
        yield stage


@contextmanager
def run_under_load(stage: Stage, topic: str) -> Iterator[None]:
    """Produce to a topic on all brokers, read all acknowledged messages back, and create a topic after the block."""
    stage.serve_topic(topic)
    with nothing_lost(stage.kafka.bootstrap_servers, topic):
        began_s = time.monotonic()
        yield
        stage.serve_topic(f"{topic}-after")
        log.info("a topic is made and served", after=topic, seconds=round(time.monotonic() - began_s, 1))
        wait_until(stage.is_led_by_ours, "one of ours leads")


def test_the_leader_of_the_servers_is_killed(stage: Stage) -> None:
    leader = stage.ensemble.leader()
    assert leader is not None
    with run_under_load(stage, "leader-killed"):
        leader.kill()
        wait_until(lambda: stage.ensemble.leader() is not None, "another server leads")
    leader.start()


def test_the_leader_of_the_servers_hangs_for_longer_than_the_others_wait_and_comes_back(stage: Stage) -> None:
    leader = stage.ensemble.leader()
    assert leader is not None
    with run_under_load(stage, "leader-hung"):
        leader.pause()
        try:
            wait_until(lambda: stage.ensemble.leader() not in (None, leader), "another server leads")
        finally:
            leader.resume()
    leader.process.wait_until_ready()


def test_the_servers_are_restarted_one_after_the_other(stage: Stage) -> None:
    with run_under_load(stage, "rolled"):
        for _ in stage.ensemble.restart_in_turn():
            wait_until(stage.is_led_by_ours, "one of ours leads")


@pytest.mark.parametrize("silence", [Silence.ANSWERS, Silence.REQUESTS])
def test_a_controller_that_is_cut_off_one_way_from_all_servers_loses_the_role(stage: Stage, silence: Silence) -> None:
    """It exits after `zookeeper_timeout_ms` of silence, which ends a session that its requests keep alive."""
    stage.give_role_to(FIRST)
    with run_under_load(stage, f"cut-off-{silence.name.lower()}"):
        try:
            for way in stage.ways:
                way.swallows = silence
            wait_until(lambda: stage.holder() not in (FIRST, None), "another has the role")
            wait_until_ended(stage.controllers[FIRST].process)
        finally:
            for way in stage.ways:
                way.swallows = Silence.NONE
    stage.controllers[FIRST].process.spawn()


def test_a_controller_and_the_server_that_it_is_connected_to_hang_beyond_its_session(stage: Stage) -> None:
    stage.give_role_to(SECOND)
    holder, server = stage.controllers[SECOND], stage.ensemble.servers[0]
    with run_under_load(stage, "hung-with-server"):
        holder.pause()
        server.pause()
        try:
            wait_until(lambda: stage.holder() not in (SECOND, None), "another has the role")
        finally:
            server.resume()
            holder.resume()
