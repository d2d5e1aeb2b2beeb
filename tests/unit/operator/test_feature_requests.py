"""The owner of a feature, the address of the controller, and the meaning of its answers."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.protocol import RequestPayload

from controller_core.client.errors import AdminError, InvalidArgument, OutcomeUnknown, Unreachable
from controller_core.client.transport.request_client import Address, ControllerClient
from controller_core.model.features import FeatureUpdate, UpgradeType
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.connections.security import Security
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk.session import ZkSession
from controller_operator.clusters.cluster import Asking, ClusterStep
from controller_operator.clusters.with_zookeeper import ClusterWithZooKeeper
from controller_operator.kafka.actions import Outcome, SubmitReassignment
from controller_operator.kafka.broker_listeners import BrokerListener
from controller_operator.kafka.controller_reach import ControllerReach
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.elections import ElectUnclean
from controller_operator.kafka.requests.features import (
    FeatureReply,
    UpdateFeatures,
    bootstrap_addresses,
    update_features,
)
from controller_operator.kubernetes.object_store import Key, ObjectStore
from controller_operator.observation.observation import Observation
from controller_operator.plans.feature_set.planner import Claims
from controller_operator.reconciling.access import ClusterAccess
from controller_operator.resources import FeatureSet
from tests.unit.operator.clusters import broker, raw, view

STEP = UpdateFeatures(
    updates=(
        FeatureUpdate(feature="f", max_version_level=4),
        FeatureUpdate(feature="g", max_version_level=1, upgrade_type=UpgradeType.SAFE_DOWNGRADE),
    )
)


class Controller:
    """A controller that answers every request the same way, and notes its requests."""

    def __init__(self, answer: UpdateFeaturesResponse | AdminError) -> None:
        self._answer = answer
        self.asked: list[UpdateFeaturesRequest] = []

    async def ask(self, request: RequestPayload, response_type: Callable[..., Any]) -> Any:
        assert isinstance(request, UpdateFeaturesRequest)
        assert response_type is UpdateFeaturesResponse
        self.asked.append(request)
        if isinstance(self._answer, AdminError):
            raise self._answer
        return self._answer


def answer(error_code: ErrorCode = ErrorCode.none, **errors: tuple[ErrorCode, str | None]) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        throttle_time=NO_THROTTLE,
        error_code=error_code,
        error_message=None,
        results=tuple(
            UpdatableFeatureResult(feature=feature, error_code=code, error_message=message)
            for feature, (code, message) in errors.items()
        ),
    )


NOT_ALLOWED = "cluster_authorization_failed (the operator's user lacks the right to Alter the cluster)"


async def test_an_update_is_asked_for_as_it_is_planned_and_never_only_validated() -> None:
    controller = Controller(answer(f=(ErrorCode.none, None), g=(ErrorCode.none, None)))
    assert await update_features(STEP, controller) == FeatureReply(step=STEP)
    (request,) = controller.asked
    assert [(key.feature, key.max_version_level, key.upgrade_type) for key in request.feature_updates] == [
        ("f", 4, 1),
        ("g", 1, 2),
    ]
    assert not request.validate_only


@pytest.mark.parametrize(
    ("response", "refused"),
    [
        (answer(f=(ErrorCode.invalid_request, "no"), g=(ErrorCode.none, None)), (("f", "no"),)),
        (answer(g=(ErrorCode.feature_update_failed, None)), (("g", "feature_update_failed"),)),
        (
            answer(ErrorCode.cluster_authorization_failed),
            (("f", NOT_ALLOWED), ("g", NOT_ALLOWED)),
        ),
    ],
)
async def test_a_refused_update_comes_with_its_reason(
    response: UpdateFeaturesResponse, refused: tuple[tuple[str, str], ...]
) -> None:
    assert await update_features(STEP, Controller(response)) == FeatureReply(step=STEP, refused=refused)


@pytest.mark.parametrize("error", [Unreachable("nobody is there"), OutcomeUnknown("no answer came")])
async def test_an_error_is_trouble_for_the_plan_to_report(error: AdminError) -> None:
    assert await update_features(STEP, Controller(error)) == FeatureReply(step=STEP, trouble=str(error))


def make_broker(number: int, *listeners: tuple[str, str]) -> Broker:
    endpoints = tuple(
        Endpoint(listener=name, security_protocol=protocol, host=f"kafka-{number}", port=9092 + at)
        for at, (name, protocol) in enumerate(listeners)
    )
    return Broker(id=broker(number).id, epoch=broker(number).epoch, endpoints=endpoints)


def test_what_the_cluster_says_of_its_bootstrap_servers_goes_first() -> None:
    assert bootstrap_addresses("a:1,[::1]:2", view()) == (Address("a", 1), Address("::1", 2))


def test_without_bootstrap_servers_the_brokers_plaintext_listeners_are_asked() -> None:
    brokers = [make_broker(1, ("OUT", "SSL"), ("IN", "PLAINTEXT")), make_broker(2, ("PLAINTEXT", "PLAINTEXT"))]
    seen = replace(view(), brokers={each.id: each for each in brokers})
    assert bootstrap_addresses(None, seen) == (Address("kafka-1", 9093), Address("kafka-2", 9092))


SECURED = BrokerListener(name="IN", protocol="SASL_SSL", security=Security)


def test_a_login_is_shown_to_servers_that_are_registered_alone() -> None:
    seen = replace(view(), brokers={BrokerId(1): make_broker(1, ("OUT", "PLAINTEXT"), ("IN", "SASL_SSL"))})
    for configured in (None, "kafka-1:9093"):
        assert bootstrap_addresses(configured, seen, SECURED) == (Address("kafka-1", 9093),)
    for configured in ("stranger:9093", "kafka-1:9093,stranger:9093", "kafka-1:9092"):
        with pytest.raises(InvalidArgument, match="IN of protocol SASL_SSL: remove it"):
            bootstrap_addresses(configured, seen, SECURED)
    with pytest.raises(InvalidArgument, match="correct the operator's file"):
        bootstrap_addresses(None, view(brokers=()), SECURED)


@pytest.mark.parametrize(
    ("configured", "message"), [(None, "set spec.bootstrapServers"), ("a:99999", "correct spec.bootstrapServers")]
)
def test_no_address_says_what_to_change(configured: str | None, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        bootstrap_addresses(configured, view(brokers=()))


ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))


@pytest.mark.parametrize(
    "step",
    [
        STEP,
        CancelReassignment(partitions=(ORDERS,)),
        ElectUnclean(partitions=(ORDERS,)),
        SubmitReassignment(partitions={ORDERS: (BrokerId(1),)}),
    ],
    ids=lambda step: type(step).__name__,
)
async def test_a_step_without_a_usable_address_says_what_to_change_and_is_tried_again(step: ClusterStep) -> None:
    def open_nothing(*_: object, **__: object) -> ControllerClient:
        raise AssertionError("nobody can be asked")

    observer: Any = SimpleNamespace(observation=Observation(view=view(brokers=())), session=None)
    cluster = ClusterWithZooKeeper(observer, ControllerReach(open_nothing))
    carried = await cluster.carry_out(step, Asking(bootstrap_servers="a:99999"))
    assert carried.outcome is Outcome.LOOK_AGAIN
    assert "correct spec.bootstrapServers of the KafkaCluster" in getattr(carried.reply, "trouble", "")


class TestClaims:
    """FeatureSets a (oldest), b and c of the KafkaCluster demo, and their features."""

    @pytest.fixture
    def store(self) -> ObjectStore:
        store = ObjectStore()
        for name, connect in (("demo", "zk:2181"), ("same", "zk:2181"), ("other", "zk:2181/other")):
            cluster = raw("KafkaCluster", {}, name=name, uid=name)
            store.put({**cluster, "spec": {"zookeeper": {"connect": connect}}})
        return store

    @staticmethod
    def add(store: ObjectStore, name: str, features: str, cluster: str = "demo", **metadata: Any) -> None:
        spec = {
            "clusterRef": {"name": cluster},
            "features": [{"name": feature, "maxVersionLevel": 1} for feature in features],
        }
        born = f"2025-01-0{ord(name) - ord('a') + 1}T00:00:00Z"
        store.put(raw("FeatureSet", spec, name=name, uid=name, creationTimestamp=born, **metadata))

    @staticmethod
    def claims(store: ObjectStore, name: str) -> Claims:
        async def connect(_: str) -> ZkSession:
            raise AssertionError("nobody needs a session to compare objects")

        stored = store.get(Key("FeatureSet", "shop", name))
        assert stored is not None
        assert isinstance(stored.resource, FeatureSet)
        return ClusterAccess(store, connect, unreachable_grace_s=1).feature_claims(stored.resource)

    def test_the_older_set_wins_a_feature_and_no_other(self, store: ObjectStore) -> None:
        self.add(store, "a", "fg")
        self.add(store, "b", "gh", cluster="same")
        self.add(store, "c", "h")
        assert self.claims(store, "a") == Claims(winners={}, shared=frozenset("g"))
        assert self.claims(store, "b") == Claims(winners={"g": "shop/a"}, shared=frozenset("gh"))
        assert self.claims(store, "c") == Claims(winners={"h": "shop/b"}, shared=frozenset("h"))

    def test_the_oldest_of_several_is_named(self, store: ObjectStore) -> None:
        for name in "abc":
            self.add(store, name, "f")
        assert self.claims(store, "c").winners == {"f": "shop/a"}

    def test_sets_of_other_clusters_do_not_count(self, store: ObjectStore) -> None:
        self.add(store, "a", "f", cluster="other")
        self.add(store, "b", "f", cluster="missing")
        self.add(store, "c", "f")
        assert self.claims(store, "c") == Claims()

    def test_a_younger_set_that_is_being_deleted_has_no_say_about_what_stays(self, store: ObjectStore) -> None:
        self.add(store, "a", "f")
        self.add(store, "b", "f", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x"])
        assert self.claims(store, "a") == Claims()
