"""A controller whose wall clock jumps a year ahead, then a year back, while it runs: it must not depend on it.

Brokers close connections that do not log in again within seconds, and a delegation token is valid for another hour.
Under load, every acknowledged message is read back.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Final

import pytest

from controller_core.zk import paths
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.machines.set_clock import SetClock, why_impossible
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic, wait_until_served
from tests.real.secured.test_delegation_tokens import HOUR_MS, PROPERTIES, token

pytestmark = pytest.mark.timeout(300)

NAME: Final = "clocks"
YEAR_DAYS: Final = 365
YEAR_US: Final = YEAR_DAYS * 24 * 3600 * 1_000_000
SESSION_MS: Final = 3_000
LISTENERS: Final = ListenerNames(inter_broker="INTERNAL", clients="CLIENT", protocols={"INTERNAL": "SASL_PLAINTEXT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    kafka: SecuredKafka
    controller: ControllerProcess
    clock: SetClock
    znodes: ClusterZnodes
    journal: Path

    def epoch(self) -> tuple[int | None, int]:
        return self.znodes.controller(), int(self.znodes.read("/controller_epoch"))

    def serve(self, topic: str) -> None:
        config = {"min.insync.replicas": "2"}
        serve_topic(self.znodes, topic, [[1, 2], [2, 1]], config, brokers=self.kafka.brokers)

    def times_us(self, text: str) -> set[int]:
        """Return the times of the journal's records that contain a text."""
        lines = [line for file in self.journal.glob("*.jsonl") for line in file.read_text().splitlines()]
        return {json.loads(line)["event_time_us"] for line in lines if text in line and line.endswith("}")}


@pytest.fixture
def stage(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Stage]:
    hindrance = why_impossible()
    if hindrance is not None:
        pytest.skip(f"NOT RUN, what a clock that jumps does is not shown here: {hindrance}")
    with ExitStack() as started:
        limits = {"connections.max.reauth.ms": SESSION_MS, **PROPERTIES}
        kafka = SecuredKafka(servers_folder, zookeeper, listeners=LISTENERS, name=NAME, properties=limits)
        started.callback(kafka.close)
        kafka.start()
        clock = SetClock(servers_folder.data(NAME) / "clock")
        journal = servers_folder.data(f"{NAME}-journal")
        told = {**PROPERTIES, "sasl.enabled.mechanisms": "SCRAM-SHA-512"}
        properties = kafka.write_properties(**{name.replace(".", "_"): value for name, value in told.items()})
        controller = ControllerProcess(
            servers_folder,
            kafka.zookeeper_connect,
            name=f"{NAME}-controller",
            settings={"properties": str(properties), "journal_directory": str(journal)},
            listeners=LISTENERS,
            env=clock.env,
        )
        started.callback(controller.close)
        controller.start_clocked()
        client = started.enter_context(zookeeper.client(f"/{NAME}"))
        yield Stage(kafka=kafka, controller=controller, clock=clock, znodes=ClusterZnodes(client), journal=journal)


def test_a_wall_clock_that_jumps_costs_neither_the_role_nor_a_login_nor_a_token(stage: Stage) -> None:
    now_ms, before = int(time() * 1000), stage.epoch()
    stage.serve("before")
    good = f"{paths.DELEGATION_TOKENS}/good"
    stage.znodes.client.create(good, token("good", now_ms + HOUR_MS, now_ms + HOUR_MS), makepath=True)
    with nothing_lost(stage.kafka.bootstrap_servers, "before"):
        for name, days in (("ahead", YEAR_DAYS), ("behind", -YEAR_DAYS)):
            stage.clock.jump(days)
            stage.serve(f"made-{name}")
            stage.kafka.broker(1).restart()
            stage.serve(f"made-{name}-later")
            wait_until_served(stage.znodes, "before", [0, 1])
            stage.znodes.client.create(f"{good}-no-more-{name}", token("over", now_ms - HOUR_MS, now_ms))
        stage.clock.set_right()
        stage.serve("after")
        wait_until(lambda: stage.znodes.client.get_children(paths.DELEGATION_TOKENS) == ["good"], "what is over goes")
    assert stage.epoch() == before
    log = stage.controller.process.log_path.read_text()
    assert not any(trouble in log for trouble in ("unexpected", "is missing"))
    now_us = int(time() * 1e6)
    assert max(stage.times_us('"made-ahead"')) > now_us + YEAR_US // 2, "its clock was wrong, and it says so"
    assert min(stage.times_us('"made-behind"')) < now_us - YEAR_US // 2
