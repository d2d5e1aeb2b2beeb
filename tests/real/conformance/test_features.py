"""UpdateFeatures to Kafka's own controller and to ours, with brokers that advertise no features: 3.9 has none.

Every refusal has the same error code and Kafka's words; ours adds the brokers in question.
"""

import json

import pytest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v0.request import FeatureUpdateKey as FeatureUpdateKeyV0
from kio.schema.update_features.v0.request import UpdateFeaturesRequest as UpdateFeaturesRequestV0
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16

from controller_core.model.features import UpgradeType
from devcluster.clients.tools import FEATURES
from tests.real.conformance.clusters import ConformanceCluster

UNKNOWN, UPGRADE, SAFE, UNSAFE = UpgradeType
NONE = {"version": 2, "status": 1, "features": {}}
NOT_SUPPORTED = "Could not apply finalized feature update because the provided feature is not supported"
ABSENT = "Can not delete non-existing finalized feature."


def update(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    keys = (FeatureUpdateKey(feature=f, max_version_level=i16(v), upgrade_type=i8(t)) for f, v, t in updates)
    return UpdateFeaturesRequest(feature_updates=tuple(keys), validate_only=validate_only)


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "message"),
    [
        ("", 0, UNKNOWN, "Feature name can not be empty."),
        ("f", 0, UNKNOWN, "Received unknown upgrade type."),
        ("f", 0, 9, "Received unknown upgrade type."),
        ("f", 0, SAFE, ABSENT),
        ("f", -1, UNSAFE, ABSENT),
        ("f", 0, UPGRADE, "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the"),
        ("f", 1, UPGRADE, NOT_SUPPORTED),
        ("f", 1, SAFE, NOT_SUPPORTED),
        ("f", 1, UNSAFE, NOT_SUPPORTED),
        ("metadata.version", 1, UPGRADE, NOT_SUPPORTED),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_the_same_words(
    cluster: ConformanceCluster, feature: str, level: int, upgrade_type: int, message: str
) -> None:
    response = cluster.ask_controller(update((feature, level, upgrade_type)))
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    (result,) = response.results
    assert (result.feature, result.error_code) == (feature, ErrorCode.invalid_request)
    assert result.error_message.startswith(message)
    assert cluster.znodes.read("/feature") == NONE


def test_each_feature_has_its_own_answer_and_of_two_updates_of_one_the_first_counts(
    cluster: ConformanceCluster,
) -> None:
    response = cluster.ask_controller(update(("f", 0, SAFE), ("g", 1, UPGRADE), ("f", 1, UPGRADE), validate_only=True))
    answers = {result.feature: result.error_message for result in response.results}
    assert set(answers) == {"f", "g"}
    assert answers["f"] == ABSENT
    assert answers["g"].startswith(NOT_SUPPORTED)


def test_no_update_is_an_update_without_answers(cluster: ConformanceCluster) -> None:
    response = cluster.ask_controller(update())
    assert (response.error_code, response.results) == (ErrorCode.none, ())


@pytest.mark.parametrize(("allows_downgrade", "message"), [(True, ABSENT), (False, "Can not provide versionLevel: 0")])
def test_the_first_version_is_still_understood(
    cluster: ConformanceCluster, allows_downgrade: bool, message: str
) -> None:
    key = FeatureUpdateKeyV0(feature="f", max_version_level=i16(0), allow_downgrade=allows_downgrade)
    response = cluster.ask_controller(UpdateFeaturesRequestV0(feature_updates=(key,)))
    assert response.results[0].error_message.startswith(message)


def test_the_set_up_znode_is_the_same(cluster: ConformanceCluster) -> None:
    data, _ = cluster.znodes.client.get("/feature")
    assert json.loads(data) == NONE


def test_a_new_controller_enables_what_was_disabled_and_rewrites_an_old_version(cluster: ConformanceCluster) -> None:
    def find_epoch(broker: int) -> int:
        """Return the version of /feature that a broker has seen; -1 for none."""
        asked = ApiVersionsRequest(client_software_name="conformance", client_software_version="1")
        return int(cluster.ask_broker(broker, asked).finalized_features_epoch)

    for content in (
        {"version": 2, "status": 0, "features": {}},
        {"version": 1, "status": 1, "features": {}},
        {"version": 1, "status": 0, "features": {"f": {"min_version_level": 1, "max_version_level": 2}}},
        None,
    ):
        if content is None:
            # A new controller sets features up before it serves topics, so nobody creates the znode again from here on.
            cluster.serve_topic("after-features", [[1, 2]])
            cluster.znodes.client.delete("/feature")
            # A broker that sees only the next znode, whose version is older than the one it knows, exits.
            cluster.wait(lambda: set(map(find_epoch, cluster.kafka.brokers)) == {-1}, "the brokers know of no features")
        else:
            cluster.znodes.client.set("/feature", json.dumps(content).encode())
        cluster.begin_a_new_term()
        cluster.wait(lambda: cluster.znodes.read("/feature") == NONE, f"{content} is set up anew")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("upgrade", "--feature", "f=1"), "Could not upgrade f to 1."),
        (("downgrade", "--feature", "f=1"), "Could not downgrade f to 1."),
        (("disable", "--feature", "f"), "Could not disable f."),
    ],
)
def test_kafkas_feature_tool_says_why_it_could_not(
    cluster: ConformanceCluster, command: tuple[str, ...], message: str
) -> None:
    done = cluster.run_tool(FEATURES, *command, bootstrap=cluster.kafka.bootstrap_servers)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert NOT_SUPPORTED in done.stdout or ABSENT in done.stdout, done.stdout + done.stderr


def test_kafkas_feature_tool_describes_a_cluster_without_features(cluster: ConformanceCluster) -> None:
    done = cluster.run_tool(FEATURES, "describe", bootstrap=cluster.kafka.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    assert "SupportedMinVersion" not in done.stdout
