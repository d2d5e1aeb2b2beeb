"""A call finds its server within its time, asks for nothing twice that may have been done, and says why it ends."""

from collections.abc import AsyncIterator

import pytest
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey
from kio.schema.create_topics.v5 import CreateTopicsResponse
from kio.schema.create_topics.v5.response import CreatableTopicResult
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.types import TopicName
from kio.schema.update_features.v1 import UpdateFeaturesResponse
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.primitive import i16, i64

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import OutcomeUnknown, PartlyRefused, Refused, Unreachable
from controller_core.client.features import FeatureUpdate
from tests.unit.client.transport.servers import METADATA, NO_TIME, Server, Servers, three_servers

API_VERSIONS, CREATE_TOPICS, UPDATE_FEATURES = 18, 19, 57


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """The first one is the controller."""
    async with three_servers() as started:
        yield started


def client(*bootstrap: Server) -> AdminClient:
    servers = ",".join(str(server.address) for server in bootstrap)
    return AdminClient({"bootstrap.servers": servers, "default.api.timeout.ms": 20_000})


def make_created(error_code: ErrorCode = ErrorCode.none, message: str | None = None) -> CreateTopicsResponse:
    result = CreatableTopicResult(name=TopicName("orders"), error_code=error_code, error_message=message, configs=None)
    return CreateTopicsResponse(throttle_time=NO_TIME, topics=(result,))


def nothing_moves() -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, topics=()
    )


def features(epoch: int, *, newest: int = 1, **levels: int) -> ApiVersionsResponse:
    update = ApiVersion(api_key=i16(UPDATE_FEATURES), min_version=i16(0), max_version=i16(newest))
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(update,),
        throttle_time=NO_TIME,
        finalized_features_epoch=i64(epoch),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(1))
            for name, level in levels.items()
        ),
    )


def make_updated(**errors: ErrorCode) -> UpdateFeaturesResponse:
    results = (
        UpdatableFeatureResult(feature=name, error_code=code, error_message=None) for name, code in errors.items()
    )
    return UpdateFeaturesResponse(
        throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, results=tuple(results)
    )


async def test_the_controller_is_looked_for_once_and_again_when_it_has_moved(servers: Servers) -> None:
    former, broker, present = servers
    former.script = [make_created(), make_created(), make_created(ErrorCode.not_controller)]
    present.script = [make_created()]
    admin = client(broker)
    await admin.create_topic("orders", 1, 1)
    await admin.create_topic("orders", 1, 1)
    assert broker.asked == [METADATA]
    broker.controllers = former.controllers = [present]
    await admin.create_topic("orders", 1, 1)
    assert (former.asked.count(CREATE_TOPICS), present.asked.count(CREATE_TOPICS)) == (3, 1)


async def test_an_answer_that_is_lost_is_asked_for_again_only_where_nothing_can_have_been_done(
    servers: Servers,
) -> None:
    controller, broker, _ = servers
    controller.script = [None]
    with pytest.raises(OutcomeUnknown, match="describe it first"):
        await client(broker).create_topic("orders", 1, 1)
    assert controller.asked.count(CREATE_TOPICS) == 1
    controller.script = [None, nothing_moves()]
    assert await client(broker).list_reassignments() == {}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.unknown_server_error, "UNKNOWN_SERVER_ERROR -1, AdminRequestFailed 21 in KIP-4"),
        (ErrorCode.topic_already_exists, "TOPIC_ALREADY_EXISTS 36"),
        (ErrorCode.invalid_replication_factor, "INVALID_REPLICATION_FACTOR 38"),
    ],
)
async def test_an_error_has_kafka_s_code_and_the_name_of_the_specification(
    servers: Servers, code: ErrorCode, said: str
) -> None:
    servers[0].script = [make_created(code, "these are its words")]
    with pytest.raises(Refused, match="topic orders: these are its words") as refused:
        await client(servers[1]).create_topic("orders", 1, 1)
    assert said in str(refused.value)
    assert refused.value.code is code


def test_who_is_not_the_controller_is_named_as_in_the_specification() -> None:
    """A client looks for the controller instead of saying so."""
    refused = Refused("topic orders", ErrorCode.not_controller, None)
    assert (refused.name_of_the_specification, refused.code_of_the_specification) == (
        "NotControllerForAdminRequest",
        22,
    )
    assert str(refused) == "topic orders: not controller (NOT_CONTROLLER 41, NotControllerForAdminRequest 22 in KIP-4)"


async def test_nobody_who_is_the_controller_in_time_is_said(servers: Servers) -> None:
    _, broker, _ = servers
    broker.controllers = []
    with pytest.raises(
        Unreachable, match="in 500 ms: the cluster says that 1000 is the controller, and does not list it"
    ):
        await client(broker).create_topic("orders", 1, 1, timeout_ms=500)
    refusing, other, _ = servers
    other.controllers = refusing.controllers = [refusing]
    refusing.script.extend(make_created(ErrorCode.not_controller) for _ in range(50))
    with pytest.raises(Unreachable, match="is not the controller"):
        await client(other).create_topic("orders", 1, 1, timeout_ms=700)


async def test_the_properties_limit_a_change_of_features(servers: Servers) -> None:
    _, broker, _ = servers
    broker.controllers = []
    admin = AdminClient({"bootstrap.servers": str(broker.address), "default.api.timeout.ms": 500})
    with pytest.raises(Unreachable, match="in 500 ms"):
        await admin.update_features([FeatureUpdate(feature="f", level=1)])
    with pytest.raises(Unreachable, match="in 500 ms"):
        await admin.delete_features(["f"])


async def test_a_server_that_says_nothing_has_its_share_of_the_time(servers: Servers) -> None:
    _, broker, silent = servers
    silent.is_silent = True
    with pytest.raises(Unreachable, match="did not answer"):
        await client(silent).list_reassignments(timeout_ms=500)
    servers[0].script = [nothing_moves()]
    assert await client(silent, broker).list_reassignments(timeout_ms=15_000) == {}


async def test_features_of_a_lower_epoch_than_was_seen_are_not_believed(servers: Servers) -> None:
    controller, broker, other = servers
    admin = client(broker, other)
    broker.controllers = other.controllers = [controller]
    broker.script = [features(5, f=2), features(4, f=1), features(4, f=1)]
    other.script = [features(5, f=2)]
    assert (await admin.describe_features()).epoch == 5
    found = await admin.describe_features()
    assert (found.epoch, found.answered_by) == (5, other.address)
    for server in servers:
        server.script.clear()
        server.script.extend(features(4, f=1) for _ in range(20))
    with pytest.raises(Unreachable, match="answers epoch 4, but 5 was seen before"):
        await admin.describe_features(timeout_ms=600)


async def test_an_older_controller_is_asked_to_validate_all_before_any_is_sent(servers: Servers) -> None:
    controller, broker, _ = servers
    asked = [FeatureUpdate(feature="f", level=2), FeatureUpdate(feature="g", level=1)]
    controller.script = [features(1), make_updated(f=ErrorCode.none, g=ErrorCode.invalid_request)]
    with pytest.raises(Refused, match="feature g"):
        await client(broker).update_features(asked)
    fine = make_updated(f=ErrorCode.none, g=ErrorCode.none)
    controller.script = [features(1), fine, fine, features(2, f=2, g=1)]
    assert (await client(broker).update_features(asked)).epoch == 2
    controller.script = [features(1), fine, make_updated(f=ErrorCode.none, g=ErrorCode.invalid_request)]
    with pytest.raises(PartlyRefused, match="1 of 2 were changed, because of a concurrent change") as partly:
        await client(broker).update_features(asked)
    (refused,) = partly.value.refused
    assert isinstance(refused, Refused)
    assert refused.code is ErrorCode.invalid_request
