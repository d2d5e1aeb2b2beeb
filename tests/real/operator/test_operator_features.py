"""FeatureSets on a real API server and a real ZooKeeper, with our controller's own process, and with Kafka's.

Brokers of Kafka 3.9 support no feature and exit when one is finalized. So the brokers of our controller are fake:
registrations in ZooKeeper and a server behind them, which accepts the controller's requests and names the controller.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kazoo.client import KazooClient
from kio.schema.metadata.v12 import MetadataResponse
from kio.schema.metadata.v12.response import MetadataResponseBroker
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i32
from kio.static.protocol import ResponsePayload

from controller_core.model.ids import BrokerId
from controller_core.wire.codecs.frames import RequestHead, encode_response
from controller_core.wire.messages import NO_THROTTLE, ErrorCode, UpdateMetadataResponse
from controller_core.zk import codecs, paths
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.stand_ins.stand_in_broker import Answer, is_there, register, stand_in_broker
from tests.real.conftest import StartKafka
from tests.real.operator.operated import FINALIZER, NAMESPACE, Objects, Operator, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

METADATA, UPDATE_METADATA = 3, 6


def make_answer(controller: ControllerProcess) -> Answer:
    """Return the answers of a broker that names its controller and accepts UpdateMetadata."""
    sender = MetadataResponseBroker(
        node_id=WireBrokerId(controller.controller_id), host="127.0.0.1", port=i32(controller.port), rack=None
    )
    metadata = MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(sender,),
        cluster_id="stand-ins",
        controller_id=sender.node_id,
        topics=(),
    )
    responses: dict[int, ResponsePayload] = {
        METADATA: metadata,
        UPDATE_METADATA: UpdateMetadataResponse(error_code=ErrorCode.none),
    }

    def answer(head: RequestHead) -> bytes | None:
        response = responses.get(head.api_key)
        return is_there(head) if response is None else encode_response(response, head.correlation_id)

    return answer


class Features:
    """Fake brokers, and their supported and finalized features."""

    def __init__(self, client: KazooClient, port: int) -> None:
        self._client = client
        self._port = port

    def register(self, number: int, **features: tuple[int, int]) -> None:
        """Register a broker, or rewrite its registration."""
        register(self._client, number, self._port, features)

    def finalize(self, **levels: int) -> None:
        """Write the finalized levels behind the controller's back."""
        self._client.set(paths.FEATURE, codecs.encode_features(codecs.FeatureZnode(features=levels)))

    def read_finalized(self) -> dict[str, int]:
        return dict(codecs.decode_features(self._client.get(paths.FEATURE)[0]).features)

    def epoch(self) -> int:
        return int(self._client.get(paths.FEATURE)[1].version)


@pytest.fixture(scope="module")
def cluster(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[tuple[str, Features]]:
    """The connect string of a cluster under our controller, and its features."""
    connect = f"{zookeeper.connect}/operated-features"
    with zookeeper.client() as client:
        client.create("/operated-features/cluster/id", b'{"version":"1","id":"stand-ins"}', makepath=True)
    with (
        ControllerProcess(servers_folder, connect, name="controller-of-featuresets") as controller,
        stand_in_broker(make_answer(controller)) as port,
        open_client(connect) as client,
    ):
        yield connect, Features(client, port)


@pytest.fixture
def features(cluster: tuple[str, Features]) -> Features:
    """Two brokers that support f and g, broker 2 not all of f; nothing is finalized."""
    _, found = cluster
    found.register(1, f=(1, 5), g=(1, 2))
    found.register(2, f=(1, 4), g=(1, 2))
    found.finalize()
    return found


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, cluster: tuple[str, Features]) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, cluster[0]) as found:
        yield found


@pytest.fixture
def operator(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects, features: Features
) -> Iterator[Operator]:
    with run_operator(servers_folder, kubernetes_api) as running:
        yield running
    for each in objects.every("featureset"):
        remove(objects, each["metadata"]["name"])


def remove(objects: Objects, name: str) -> None:
    """Delete a FeatureSet without an operator, with its finalizers."""
    objects.delete("featureset", name)
    if objects.get("featureset", name) is not None:
        objects.patch("featureset", name, {"metadata": {"finalizers": None}})


def spec(**levels: int) -> dict[str, Any]:
    return {"features": [{"name": name, "maxVersionLevel": level} for name, level in levels.items()]}


def apply(objects: Objects, name: str = "levels", **changes: Any) -> None:
    levels = {key: value for key, value in changes.items() if key in ("f", "g", "h")}
    rest = {key: value for key, value in changes.items() if key not in levels}
    objects.apply("FeatureSet", name, {**spec(**levels), **rest})


def test_levels_are_finalized_and_shown(
    operator: Operator, objects: Objects, features: Features, kubernetes_api: KubernetesCluster
) -> None:
    apply(objects, f=3, g=1)
    status = objects.wait_ready("featureset", "levels")["status"]
    assert features.read_finalized() == {"f": 3, "g": 1}
    assert (status["finalized"], status["epoch"]) == ("f=3, g=1", features.epoch())
    assert [(each["name"], each["finalizedLevel"], each["supported"]) for each in status["features"]] == [
        ("f", 3, {"minVersion": 1, "maxVersion": 4}),
        ("g", 1, {"minVersion": 1, "maxVersion": 2}),
    ]
    printed = kubernetes_api.kubectl("get", "kfs", "levels", "--namespace", NAMESPACE)
    assert printed.splitlines()[0].split() == ["NAME", "CLUSTER", "FINALIZED", "EPOCH", "READY", "REASON", "AGE"]
    wait_until(
        lambda: objects.status("kafkacluster", "demo").get("features", {}).get("epoch") == features.epoch(),
        "the KafkaCluster shows the features",
    )
    shown = objects.status("kafkacluster", "demo")["features"]["finalized"]
    assert shown == [{"name": "f", "maxVersionLevel": 3}, {"name": "g", "maxVersionLevel": 1}]


def test_a_broker_in_the_way_is_named_until_it_is_upgraded(
    operator: Operator, objects: Objects, features: Features
) -> None:
    apply(objects, f=5, g=2)
    blocked = objects.wait_ready("featureset", "levels", "False", "FeatureUnsupported")["status"]
    assert "broker 2 supports 1 to 4" in blocked["features"][0]["message"]
    assert blocked["features"][0]["blockedBy"] == [2]
    assert features.read_finalized() == {"g": 2}, "the other one is finalized"
    features.register(2, f=(1, 5), g=(1, 2))
    objects.wait_ready("featureset", "levels")
    assert features.read_finalized() == {"f": 5, "g": 2}


def test_a_level_that_was_changed_elsewhere_is_put_right(
    operator: Operator, objects: Objects, features: Features
) -> None:
    apply(objects, f=3)
    objects.wait_ready("featureset", "levels")
    features.finalize(f=2)
    wait_until(lambda: features.read_finalized() == {"f": 3}, "the level is back")
    objects.wait_ready("featureset", "levels")
    objects.wait_for_event("levels", "FeaturesDrifted")
    assert objects.condition("featureset", "levels", "Drifted")["status"] == "False"


def test_a_level_is_lowered_only_where_that_is_allowed(
    operator: Operator, objects: Objects, features: Features
) -> None:
    apply(objects, f=3)
    objects.wait_ready("featureset", "levels")
    apply(objects, f=2)
    objects.wait_ready("featureset", "levels", "False", "DowngradeNotAllowed")
    assert features.read_finalized() == {"f": 3}
    apply(objects, f=2, allowDowngrade=True)
    objects.wait_ready("featureset", "levels")
    assert features.read_finalized() == {"f": 2}


def test_a_dry_run_shows_what_would_be_changed(operator: Operator, objects: Objects, features: Features) -> None:
    apply(objects, f=3, dryRun=True)
    dry = objects.wait_ready("featureset", "levels", "False", "DryRun")["status"]
    assert dry["features"][0]["message"] == "to be changed: f from not finalized to 3"
    assert features.read_finalized() == {}


def test_the_older_of_two_sets_has_a_feature_until_it_goes(
    operator: Operator, objects: Objects, features: Features
) -> None:
    apply(objects, "older", f=3)
    older = objects.wait_ready("featureset", "older")
    wait_until(lambda: _is_over(older["metadata"]["creationTimestamp"]), "a second has passed")
    apply(objects, "younger", f=4)
    conflict = objects.wait_ready("featureset", "younger", "False", "ResourceConflict")["status"]
    assert f"{NAMESPACE}/older" in next(
        each["message"] for each in conflict["conditions"] if each["type"] == "Conflict"
    )
    assert features.read_finalized() == {"f": 3}
    objects.delete("featureset", "older")
    objects.wait_ready("featureset", "younger")
    assert features.read_finalized() == {"f": 4}


@pytest.mark.parametrize(("policy", "left"), [("Delete", {"g": 1}), ("Retain", {"f": 3, "g": 1})])
def test_levels_go_with_their_set_where_its_policy_says_so(
    operator: Operator, objects: Objects, features: Features, policy: str, left: dict[str, int]
) -> None:
    features.finalize(g=1)
    apply(objects, f=3, deletionPolicy=policy)
    found = objects.wait_ready("featureset", "levels")
    assert (FINALIZER in found["metadata"].get("finalizers", [])) == (policy == "Delete")
    objects.delete("featureset", "levels")
    wait_until(lambda: objects.get("featureset", "levels") is None, "the object is gone")
    assert features.read_finalized() == left


@pytest.mark.parametrize("die_after", [1, 2, 3, 4])
def test_an_operator_that_dies_after_any_write_finalizes_a_level_once(
    operator: Operator, objects: Objects, features: Features, die_after: int
) -> None:
    operator.process.kill()
    operator.start(die_after=die_after)
    before = features.epoch()
    apply(objects, f=3, deletionPolicy="Delete")
    operator.wait_until_dead()
    operator.start()
    objects.wait_ready("featureset", "levels")
    assert (features.read_finalized(), features.epoch()) == ({"f": 3}, before + 1)


def test_what_kafkas_own_controller_refuses_is_reported_in_its_words(
    start_kafka: StartKafka, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    """A 3.9 broker supports nothing; if its registration claims otherwise, its controller still knows better."""
    kafka = start_kafka(brokers=1)
    with (
        operate_namespace(kubernetes_api, kafka.zookeeper_connect) as objects,
        open_client(kafka.zookeeper_connect) as client,
        run_operator(servers_folder, kubernetes_api),
    ):
        apply(objects, "kafkas", f=1)
        blocked = objects.wait_ready("featureset", "kafkas", "False", "FeatureUnsupported")["status"]
        assert "broker 1 supports none" in blocked["features"][0]["message"]
        path = paths.broker(BrokerId(1))
        registered = json.loads(client.get(path)[0])
        client.set(path, json.dumps({**registered, "features": {"f": {"min_version": 1, "max_version": 1}}}).encode())
        refused = objects.wait_ready("featureset", "kafkas", "False", "RequestRefused")["status"]
        assert "the provided feature is not supported" in refused["features"][0]["message"]
        assert codecs.decode_features(client.get(paths.FEATURE)[0]).features == {}


def _is_over(timestamp: str) -> bool:
    """Return True if the second of a timestamp has passed, because the age of objects is in seconds."""
    return datetime.now(UTC) >= datetime.fromisoformat(timestamp) + timedelta(seconds=1)
