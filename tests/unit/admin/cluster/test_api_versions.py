"""The answer to ApiVersions: the broker's answer, amended by the APIs that the controller answers itself."""

from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, SupportedFeatureKey
from kio.static.primitive import i16, i32Timedelta

from controller_core.admin.cluster import api_versions
from controller_core.admin.cluster.api_versions import VersionRange
from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.model.features import FinalizedFeatures
from controller_core.wire.api_table import HANDLING, Handling
from controller_core.wire.codecs.frames import encode_response
from controller_core.wire.codecs.versions import convert
from controller_core.wire.listener.owned_api import AskBroker
from controller_core.wire.messages import ErrorCode
from simulation.cluster import Cluster

OWN = {56: VersionRange(min=3, max=3), 3: VersionRange(min=0, max=12)}
NO_TIME = i32Timedelta.parse(timedelta())


def request(version: int, name: str = "tester", software_version: str = "1.0") -> Any:
    software = {"client_software_name": name, "client_software_version": software_version} if version >= 3 else {}
    return load_request_schema(18, version)(**software)


def make_broker_versions(*ranges: tuple[int, int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(ApiVersion(api_key=i16(k), min_version=i16(a), max_version=i16(b)) for k, a, b in ranges),
        throttle_time=NO_TIME,
        supported_features=(SupportedFeatureKey(name="f", min_version=i16(1), max_version=i16(3)),),
        zk_migration_ready=True,
    )


def ranges_of(answer: Any) -> dict[int, tuple[int, int]]:
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}


@pytest.fixture
async def view(cluster: Cluster) -> ClusterView:
    cluster.start_brokers(1)
    await cluster.serve()
    term = cluster.active.controller.term
    assert term is not None
    return ClusterView(state=term.state, controller=term.identity, listener="PLAINTEXT", cluster_id="c")


def question(view: ClusterView, version: int) -> AskBroker:
    answer = api_versions.on_api_versions(view, OWN, request(version))
    assert isinstance(answer, AskBroker)
    return answer


@pytest.mark.parametrize("version", range(5))
def test_own_versions_replace_the_brokers_and_what_is_refused_is_not_offered(view: ClusterView, version: int) -> None:
    broker = make_broker_versions((0, 0, 11), (4, 0, 7), (5, 0, 4), (6, 0, 8), (18, 0, 4), (56, 0, 3), (58, 0, 0))
    amended = question(view, version).amended
    assert amended is not None
    answer = api_versions.VERSIONS.lower(amended(convert(broker, load_response_schema(18, version))), version)
    encode_response(answer, 1)
    assert ranges_of(answer) == {0: (0, 11), 3: (0, 12), 18: (0, 4), 56: (3, 3)}


def test_features_are_the_brokers_where_supported_and_the_controllers_where_finalized(view: ClusterView) -> None:
    view.state.set_finalized_features(FinalizedFeatures(features={"f": 2}, epoch=7))
    amended = question(view, 4).amended
    assert amended is not None
    answer: Any = amended(make_broker_versions())
    assert [(feature.name, feature.max_version) for feature in answer.supported_features] == [("f", 3)]
    assert answer.finalized_features_epoch == 7
    levels = [(f.name, f.min_version_level, f.max_version_level) for f in answer.finalized_features]
    assert levels == [("f", 2, 2)]
    assert answer.zk_migration_ready


async def test_without_a_broker_what_would_be_passed_on_is_offered_and_nothing_that_is_refused(
    view: ClusterView,
) -> None:
    """For as long as it is connected, a client takes an API that is not offered to exist nowhere: Kafka's own clients
    then fail for good."""
    otherwise = question(view, 3).otherwise
    assert otherwise is not None
    offered = ranges_of(await otherwise())
    assert offered[3] == (0, 12)
    assert offered[56] == (3, 3)
    passed_on = {key for key, handling in HANDLING.items() if handling is Handling.RELAY}
    assert set(offered) == passed_on | set(OWN)
    assert all(load_request_schema(key, version) for key in passed_on for version in offered[key])


@pytest.mark.parametrize("wrong", ["", "-a", "a-", "a b", "ä", "a\n"])
def test_a_client_whose_software_has_an_impossible_name_or_version_is_refused(view: ClusterView, wrong: str) -> None:
    for asked in (request(3, name=wrong), request(4, software_version=wrong)):
        answer: Any = api_versions.on_api_versions(view, OWN, asked)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.invalid_request, ())


def test_an_unknown_version_is_told_which_are_known() -> None:
    answer: Any = api_versions.make_unsupported_response()
    assert answer.__version__ == 0
    assert answer.error_code is ErrorCode.unsupported_version
    assert ranges_of(answer) == {18: (0, 4)}
