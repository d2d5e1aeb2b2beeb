"""Finalized features on a real ZooKeeper, by our controller's own process, and their effect on a real broker.

Kafka 3.9 brokers in ZooKeeper mode advertise no features. So updates are tested with fake brokers that only exist as
registrations, and refusals and the exit of an incompatible broker with real ones.
"""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pytest
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey
from kio.static.primitive import i8, i16

from controller_core.model.features import UpgradeType
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.clients.tools import FEATURES, run_tool
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import open_client
from devcluster.running.processes import StartError, wait_until
from devcluster.stand_ins.stand_in_broker import register, stand_in_broker, unregister
from devcluster.waiting.vocabulary import wait_until_ended, wait_until_led
from tests.real.conftest import StartKafka

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

UPGRADE, SAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE
SUPPORTS: Final = {"f": (1, 5), "g": (1, 2)}
IS_OLD: Final = {"f": (1, 2), "g": (1, 2)}
Update = tuple[str, int, UpgradeType]


@dataclass(slots=True, kw_only=True)
class FeatureCluster:
    """Registrations that the test makes, and our controller, which takes them for brokers."""

    client: KazooClient
    znodes: ClusterZnodes
    controller: ControllerProcess
    port: int
    """The port of a server that only answers ApiVersions: other requests to these brokers are retried forever."""

    def register(self, broker: int, features: Mapping[str, tuple[int, int]]) -> None:
        register(self.client, broker, self.port, features)

    def unregister(self, broker: int) -> None:
        unregister(self.client, broker)

    def read_finalized(self) -> tuple[dict[str, int], int]:
        """Return the levels in `/feature`, and the znode's version."""
        data, stat = self.client.get("/feature")
        content = json.loads(data)
        assert (content["version"], content["status"]) == (2, 1)
        return {name: level["max_version_level"] for name, level in content["features"].items()}, stat.version

    def ask(self, *updates: Update, validate_only: bool = False) -> UpdateFeaturesResponse:
        keys = (FeatureUpdateKey(feature=f, max_version_level=i16(v), upgrade_type=i8(t)) for f, v, t in updates)
        request = UpdateFeaturesRequest(feature_updates=tuple(keys), validate_only=validate_only)
        response = send_request(("127.0.0.1", self.controller.port), request)
        assert isinstance(response, UpdateFeaturesResponse)
        return response

    def update(self, *updates: Update, validate_only: bool = False) -> dict[str, tuple[ErrorCode, str | None]]:
        """Return the outcome for each feature, once the process is the controller: it listens before that."""
        responses: list[UpdateFeaturesResponse] = []

        def is_answered() -> bool:
            responses.append(self.ask(*updates, validate_only=validate_only))
            return responses[-1].error_code is not ErrorCode.not_controller

        wait_until(is_answered, "the controller answers")
        assert responses[-1].error_code is ErrorCode.none, responses[-1]
        return outcome(responses[-1])

    def finalize(self, feature: str, level: int, upgrade_type: UpgradeType = UPGRADE) -> None:
        assert self.update((feature, level, upgrade_type)) == {feature: (ErrorCode.none, None)}

    def replicas_in_charge(self, topic: str, replicas: list[int]) -> tuple[int, list[int]]:
        """Return leader and ISR of a new topic's only partition, once it has them: the brokers that count as alive."""
        self.znodes.create_topic(topic, [replicas])
        wait_until_led(self.znodes, topic, *replicas)
        return self.znodes.leader(topic, 0), self.znodes.isr(topic, 0)


def outcome(response: UpdateFeaturesResponse) -> dict[str, tuple[ErrorCode, str | None]]:
    return {result.feature: (result.error_code, result.error_message) for result in response.results}


def messages(response: UpdateFeaturesResponse) -> str:
    return " ".join(filter(None, (response.error_message, *(message for _, message in outcome(response).values()))))


@pytest.fixture
def feature_cluster(servers_folder: RunFolder, zookeeper_connect: str) -> Iterator[FeatureCluster]:
    """Brokers 1 and 2, which support levels of f and g; nothing is finalized."""
    with (
        stand_in_broker() as port,
        open_client(zookeeper_connect) as client,
        ControllerProcess(servers_folder, zookeeper_connect, name=f"controller-of-features-{port}") as controller,
    ):
        cluster = FeatureCluster(client=client, znodes=ClusterZnodes(client), controller=controller, port=port)
        for broker in (1, 2):
            cluster.register(broker, SUPPORTS)
        yield cluster
        assert "unexpected error" not in controller.process.log_path.read_text(errors="replace")


def test_features_are_finalized_lowered_and_deleted_and_their_epoch_rises(feature_cluster: FeatureCluster) -> None:
    assert feature_cluster.read_finalized() == ({}, 0), "the new controller set it up"
    answers = feature_cluster.update(("f", 3, UPGRADE), ("g", 2, UPGRADE))
    assert {code for code, _ in answers.values()} == {ErrorCode.none}
    assert feature_cluster.read_finalized() == ({"f": 3, "g": 2}, 1)
    code, message = feature_cluster.update(("f", 2, UPGRADE))["f"]
    assert (code, "Can not downgrade finalized feature" in str(message)) == (ErrorCode.invalid_request, True)
    assert feature_cluster.read_finalized() == ({"f": 3, "g": 2}, 1), "a level is lowered only where that is allowed"
    feature_cluster.finalize("f", 2, SAFE)
    feature_cluster.finalize("g", 0, SAFE)
    assert feature_cluster.read_finalized() == ({"f": 2}, 3)


def test_what_cannot_be_is_refused_with_who_stands_in_the_way_and_the_rest_is_done(
    feature_cluster: FeatureCluster,
) -> None:
    feature_cluster.register(3, IS_OLD)
    answers = feature_cluster.update(("f", 3, UPGRADE), ("g", 1, UPGRADE), ("h", 1, UPGRADE))
    assert answers["g"] == (ErrorCode.none, None)
    assert answers["f"][0] is answers["h"][0] is ErrorCode.invalid_request
    assert "broker 3 supports 1 to 2" in str(answers["f"][1])
    assert feature_cluster.read_finalized() == ({"g": 1}, 1)
    assert feature_cluster.update(("f", 2, UPGRADE), validate_only=True) == {"f": (ErrorCode.none, None)}
    assert feature_cluster.read_finalized() == ({"g": 1}, 1), "only to be validated"


def test_a_broker_that_does_not_support_what_is_finalized_gets_no_replicas(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 3)
    feature_cluster.register(3, IS_OLD)
    assert feature_cluster.replicas_in_charge("guarded", [3, 1, 2]) == (1, [1, 2])
    feature_cluster.finalize("f", 2, SAFE)
    assert feature_cluster.replicas_in_charge("open", [3, 1, 2]) == (3, [1, 2, 3])


def test_a_broker_that_registers_during_an_update_stops_it_or_stays_outside(feature_cluster: FeatureCluster) -> None:
    """Both happen at the same moment, many times, and clearly one before the other, so that both outcomes occur.

    A level is never finalized while an active broker does not support it.
    """
    ends = set()
    with ThreadPoolExecutor(max_workers=1) as other:
        for number in range(12):
            is_first, is_last = number % 4 == 1, number % 4 == 3
            registering = None if is_last else other.submit(feature_cluster.register, 3, IS_OLD)
            if registering is not None and is_first:
                registering.result()
            code, message = feature_cluster.update(("f", 3, UPGRADE))["f"]
            if registering is None:
                feature_cluster.register(3, IS_OLD)
            else:
                registering.result()
            if is_first or is_last:
                assert code is (ErrorCode.invalid_request if is_first else ErrorCode.none)
            ends.add(code)
            leader, isr = feature_cluster.replicas_in_charge(f"round-{number}", [3, 1])
            if code is ErrorCode.none:
                assert feature_cluster.read_finalized()[0] == {"f": 3}
                assert (leader, isr) == (1, [1])
                feature_cluster.finalize("f", 0, SAFE)
            else:
                assert (code, "broker 3 supports 1 to 2" in str(message)) == (ErrorCode.invalid_request, True)
                assert feature_cluster.read_finalized()[0] == {}
                assert (leader, isr) == (3, [1, 3])
            feature_cluster.unregister(3)
    assert ends == {ErrorCode.none, ErrorCode.invalid_request}


def test_kafkas_feature_tool_raises_lowers_and_deletes(feature_cluster: FeatureCluster) -> None:
    """The controller is the bootstrap server, because the brokers are only registrations."""

    def change(*command: str) -> str:
        done = run_tool(FEATURES, "--bootstrap-server", feature_cluster.controller.address, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "f was upgraded to 3." in change("upgrade", "--feature", "f=3")
    assert feature_cluster.read_finalized() == ({"f": 3}, 1)
    assert "f was downgraded to 2." in change("downgrade", "--feature", "f=2")
    assert feature_cluster.read_finalized() == ({"f": 2}, 2)
    assert "f was disabled." in change("disable", "--feature", "f")
    assert feature_cluster.read_finalized() == ({}, 3)


@pytest.mark.parametrize(
    "content", [b"garbled", b'{"version":3,"status":1,"features":{}}'], ids=["garbled", "of a newer Kafka"]
)
def test_what_nobody_understands_stays_and_fails_updates_only(feature_cluster: FeatureCluster, content: bytes) -> None:
    feature_cluster.client.set("/feature", content)
    response = feature_cluster.ask(("f", 1, UPGRADE))
    codes = {response.error_code, *(code for code, _ in outcome(response).values())} - {ErrorCode.none}
    assert codes == {ErrorCode.feature_update_failed}
    assert "cannot be read" in messages(response)
    assert feature_cluster.client.get("/feature")[0] == content
    assert feature_cluster.replicas_in_charge("served", [2, 1]) == (2, [1, 2])


def test_a_controller_killed_at_any_write_leaves_the_old_features_or_the_new_ones(
    feature_cluster: FeatureCluster,
) -> None:
    """Before and after each ZooKeeper write: SIGKILL, restart, and the next controller completes the request."""
    controller = feature_cluster.controller
    feature_cluster.finalize("f", 2)
    before: tuple[dict[str, int], ...] = ({"f": 2},)
    after = {"f": 3, "g": 1}
    write, applied = 1, False
    died_between: list[bool] = []
    while True:
        controller.kill(ends_session=False)
        controller.start_to_die(write, applied=applied)
        answered = _ask_until_dead_or_answered(feature_cluster)
        found = feature_cluster.read_finalized()[0]
        assert found in (*before, after)
        if answered:
            assert found == after, "what was answered is written"
            break
        died_between.append(found == after)
        controller.restart_whole()
        if found != after:
            feature_cluster.update(("f", 3, UPGRADE), ("g", 1, UPGRADE))
        assert feature_cluster.read_finalized()[0] == after
        feature_cluster.update(("f", 2, SAFE), ("g", 0, SAFE))
        write, applied = (write, True) if not applied else (write + 1, False)
    controller.restart_whole()
    assert {True, False} <= set(died_between), "it died before the features were written, and right after"


def _ask_until_dead_or_answered(cluster: FeatureCluster) -> bool:
    """Request the update until the controller answers that it is done, or dies; return True if it answered."""
    answers: set[ErrorCode] = set()

    def is_over() -> bool:
        try:
            response = cluster.ask(("f", 3, UPGRADE), ("g", 1, UPGRADE))
        except (OSError, ConnectionClosed):  # it does not listen yet, or is dead
            return not cluster.controller.process.is_running
        answers.update(code for code, _ in outcome(response).values())
        return bool(answers)

    wait_until(is_over, "the controller answers or dies")
    assert answers <= {ErrorCode.none}
    return bool(answers)


def test_a_real_broker_ends_when_a_feature_is_finalized_that_it_does_not_support(
    start_kafka: StartKafka, servers_folder: RunFolder
) -> None:
    kafka = start_kafka(brokers=2)
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="controller-of-the-strict") as controller,
        open_client(kafka.zookeeper_connect) as client,
    ):
        process = kafka.broker(1).process
        content = {"version": 2, "status": 1, "features": {"f": {"max_version_level": 3}}}
        client.set("/feature", json.dumps(content).encode())
        for broker in kafka.brokers.values():
            wait_until_ended(broker.process)
        assert "feature compatibility checks failed" in process.log_path.read_text(errors="replace")
        with pytest.raises(StartError):
            kafka.broker(1).start()
        cluster = FeatureCluster(client=client, znodes=ClusterZnodes(client), controller=controller, port=0)
        cluster.finalize("f", 0, SAFE)
        kafka.broker(1).start()
        assert cluster.replicas_in_charge("back", [1]) == (1, [1])
