"""Packets that are lost, late, or dropped one way, between a controller and ZooKeeper, and between it and one broker.

Under load that all brokers acknowledge, every message is read back. The time without a controller is logged, and never
asserted.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import structlog

from devcluster.machines.network import Machine
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_controlled_by, wait_until_logged
from tests.real.controller.networks.stage import FIRST, SECOND, Stage, run_under_load

log = structlog.get_logger()
LOST_SHARE = 0.15
OURS_UNHEARD, OURS_DEAF, NOTHING = "what it says is lost", "what it is told is lost", "nothing passes"


@contextmanager
def cut_off(stage: Stage, machine: Machine, way: str) -> Iterator[None]:
    """Cut the first controller off from another machine, one way or both."""
    with ExitStack() as cuts:
        if way != OURS_DEAF:
            cuts.enter_context(stage.network.cut(stage.first, machine))
        if way != OURS_UNHEARD:
            cuts.enter_context(stage.network.cut(machine, stage.first))
        yield


def test_a_controller_serves_while_packets_between_it_and_zookeeper_are_lost(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    with (
        run_under_load(stage, "zookeeper-lossy"),
        stage.network.lossy(stage.first, stage.zookeeper, share=LOST_SHARE),
    ):
        for number in range(3):
            stage.serve(f"zookeeper-lossy-{number}", [1 + number, 1 + (number + 1) % 3])


def test_a_controller_keeps_the_role_while_zookeeper_is_far_away(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    epochs = stage.epochs(FIRST)
    with run_under_load(stage, "zookeeper-slow"), stage.network.slow(stage.first, stage.zookeeper):
        for number in range(3):
            stage.serve(f"zookeeper-slow-{number}", [1 + number, 1 + (number + 1) % 3])
        assert (stage.holder(), stage.epochs(FIRST)) == (FIRST, epochs)


@pytest.mark.parametrize("way", [OURS_UNHEARD, OURS_DEAF, NOTHING])
def test_a_controller_that_is_cut_off_from_zookeeper_loses_the_role_and_stands_by_when_it_is_back(
    stage: Stage, way: str
) -> None:
    stage.give_role_to(FIRST)
    name = f"zookeeper-cut-{way.replace(' ', '-')}"
    with run_under_load(stage, name):
        with cut_off(stage, stage.zookeeper, way):
            began_s = time.monotonic()
            stage.create(f"{name}-asked-for", [1, 2, 3])
            wait_until_controlled_by(stage.znodes, SECOND)
            stage.wait_until_served(f"{name}-asked-for")
            log.info("there was no controller that acted", by=name, seconds=round(time.monotonic() - began_s, 1))
        wait_until(lambda: stage.stands_by(FIRST), "it stands by")
        assert stage.holder() == SECOND
        assert stage.controllers[FIRST].process.is_running, "it is the same process"


def test_one_broker_gets_what_it_is_sent_over_a_bad_way(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    far = stage.broker(3)
    with run_under_load(stage, "broker-lossy"), stage.network.lossy(stage.first, far, share=LOST_SHARE):
        stage.serve("broker-lossy-near", [1, 2])
        stage.serve("broker-lossy-far", [3])
    with run_under_load(stage, "broker-slow"), stage.network.slow(stage.first, far):
        stage.serve("broker-slow-near", [1, 2])
        stage.serve("broker-slow-far", [3])
    assert stage.holder() == FIRST


@pytest.mark.parametrize("way", [OURS_UNHEARD, OURS_DEAF, NOTHING])
def test_a_broker_that_is_cut_off_is_noticed_holds_up_no_other_and_gets_what_it_missed(stage: Stage, way: str) -> None:
    stage.give_role_to(FIRST)
    name = f"broker-cut-{way.replace(' ', '-')}"
    with run_under_load(stage, name):
        logged = len(stage.read_log())
        with cut_off(stage, stage.broker(3), way):
            stage.create(f"{name}-missed", [3])
            stage.serve(f"{name}-beside", [1, 2])
            wait_until_logged(stage.controllers[FIRST].process, "control request not delivered", since=logged)
            stage.serve(f"{name}-beside-later", [2, 1])
        stage.wait_until_served(f"{name}-missed")
    assert stage.holder() == FIRST
