"""The role of the controller: taking it, losing it, giving it back, and being refused it."""

import json
import urllib.error
from pathlib import Path
from typing import Any

from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from devcluster.running.scraping import open_locally
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    wait_until_controlled_by,
    wait_until_hot,
    wait_until_logged,
)
from tests.real.controller.clusters import OurCluster


def readyz(controller: ControllerProcess) -> tuple[int, dict[str, Any]]:
    """Return the status and the content of `/readyz`."""
    try:
        with open_locally(f"http://127.0.0.1:{controller.metrics_port}/readyz", timeout_s=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_killed_controller_is_replaced_by_kafkas_own_and_takes_the_role_back(our_cluster: OurCluster) -> None:
    znodes, ours = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("handed-back", [[1, 2, 3]], {"min.insync.replicas": "2"})
    with nothing_lost(our_cluster.kafka.bootstrap_servers, "handed-back"):
        ours.kill()
        wait_until_controlled_by(znodes, *our_cluster.kafka.brokers)
        our_cluster.serve_topic("made-by-kafka", [[4, 5]])
        ours.restart_whole()
        our_cluster.serve_topic("made-by-us", [[4, 5]])


def test_a_controller_that_is_stopped_gives_the_role_back_at_once(our_cluster: OurCluster) -> None:
    our_cluster.controller.stop()
    assert our_cluster.znodes.controller() != our_cluster.controller.controller_id, "it resigned before it ended"
    wait_until_controlled_by(our_cluster.znodes, *our_cluster.kafka.brokers)


def test_a_second_kontroller_stands_by_until_the_first_one_dies(
    our_cluster: OurCluster, servers_folder: RunFolder
) -> None:
    ours = our_cluster.controller
    second = ControllerProcess(
        servers_folder, our_cluster.kafka.zookeeper_connect, controller_id=1001, name="standby-controller"
    )
    second.process.spawn()
    try:
        wait_until_logged(second.process, "standing by")
        assert our_cluster.znodes.controller() == ours.controller_id
        ours.kill()
        wait_until_controlled_by(our_cluster.znodes, 1001)
        our_cluster.serve_topic("served-by-the-second", [[1, 2]])
    finally:
        second.kill()


def test_a_controller_that_is_started_again_leaves_the_role_to_one_that_is_hot_unless_it_is_hot_itself(
    our_cluster: OurCluster, servers_folder: RunFolder
) -> None:
    """While it waits for its id it is also a standby, and may have read everything before it could take the role."""
    ours = our_cluster.controller
    hot = ControllerProcess(
        servers_folder, our_cluster.kafka.zookeeper_connect, controller_id=1003, name="hot-controller"
    )
    hot.process.spawn()
    try:
        wait_until_hot(our_cluster.znodes, 1003)
        before = len(our_cluster.controller_log())

        def states_read() -> list[dict[str, object]]:
            lines = our_cluster.controller_log()[before:].splitlines()
            return [json.loads(line) for line in lines if '"reading states"' in line]

        ours.kill(ends_session=False)
        ours.process.spawn()
        wait_until(lambda: our_cluster.znodes.controller() == 1003 or bool(states_read()), "a term begins")
        our_cluster.serve_topic("served-by-one-that-was-hot", [[1, 2]])
        assert [entry["unknown"] for entry in states_read()] in ([], [0])
    finally:
        hot.kill()


def test_a_paused_controller_is_fenced_and_its_late_writes_change_nothing(our_cluster: OurCluster) -> None:
    znodes, ours = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("fenced", [[1, 2]])
    ours.pause()
    try:
        ours.end_session()
        wait_until_controlled_by(znodes, *our_cluster.kafka.brokers)
        our_cluster.serve_topic("made-meanwhile", [[3, 4]])
        epoch = znodes.state("made-meanwhile", 0)["controller_epoch"]
    finally:
        ours.resume()
    wait_until_controlled_by(znodes, ours.controller_id)
    assert int(znodes.read("/controller_epoch")) > epoch
    our_cluster.serve_topic("made-afterwards", [[5, 6]])


def test_the_id_of_a_running_broker_is_refused(our_cluster: OurCluster) -> None:
    zookeeper = our_cluster.kafka.zookeeper_connect
    refused = run_command(
        "controller", "run", "--zookeeper", zookeeper, "--id", "3", "--listen", "PLAINTEXT://127.0.0.1:1"
    )
    assert refused.returncode == 2
    assert "--id 3 is the id of a running broker" in refused.stderr


def test_a_second_process_of_one_id_is_refused_and_the_first_keeps_the_role(our_cluster: OurCluster) -> None:
    epoch = our_cluster.znodes.read("/controller_epoch")
    zookeeper, own_id = our_cluster.kafka.zookeeper_connect, str(our_cluster.controller.controller_id)
    refused = run_command(
        "controller", "run", "--zookeeper", zookeeper, "--id", own_id, "--listen", "PLAINTEXT://127.0.0.1:0"
    )
    assert refused.returncode == 2
    assert f"another controller process has the id {own_id} and is alive" in refused.stderr
    assert our_cluster.znodes.read("/controller_epoch") == epoch
    our_cluster.serve_topic("served-by-the-first", [[1, 2]])


def test_a_controller_that_reaches_no_broker_leaves_the_role_to_kafkas_own(
    our_cluster: OurCluster, servers_folder: RunFolder
) -> None:
    znodes = our_cluster.znodes
    our_cluster.controller.stop()
    wait_until_controlled_by(znodes, *our_cluster.kafka.brokers)
    epoch = znodes.read("/controller_epoch")
    lost = ControllerProcess(
        servers_folder,
        our_cluster.kafka.zookeeper_connect,
        controller_id=1002,
        name="lost-controller",
        listeners=ListenerNames(inter_broker="ELSEWHERE", clients="ELSEWHERE"),
    )
    lost.process.spawn()
    try:
        wait_until_logged(lost.process, "not standing for the role")
        status, said = readyz(lost)
        assert (status, said["ready"], said["reachable_brokers"]) == (503, False, [])
        assert "no listener 'ELSEWHERE'" in said["unreachable_brokers"]["1"]
        our_cluster.serve_topic("served-by-kafka", [[1, 2]])
        assert znodes.read("/controller_epoch") == epoch
    finally:
        lost.kill()
    our_cluster.controller.start()

    def reaches_all() -> bool:
        status, said = readyz(our_cluster.controller)
        return (status, said["role"], len(said["reachable_brokers"])) == (200, "controller", 6)

    wait_until(reaches_all, "the controller works and reaches every broker")


def test_a_zookeeper_out_of_reach_is_named_and_ends_the_process(tmp_path: Path) -> None:
    arguments = ["--id", "1000", "--listen", "PLAINTEXT://127.0.0.1:1", "--zookeeper-timeout-ms", "1000"]
    failed = run_command("controller", "run", "--zookeeper", "127.0.0.1:1", *arguments)
    assert failed.returncode == 1
    assert "127.0.0.1:1" in failed.stderr
