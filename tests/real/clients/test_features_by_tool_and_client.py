"""Kafka's tool for features and our client on one cluster: each reads what the other wrote."""

import asyncio

import pytest

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Refused
from controller_core.client.features import FeatureUpdate
from controller_core.model.features import UpgradeType
from devcluster.clients.tools import FEATURES, run_tool
from devcluster.running.processes import wait_until
from tests.real.test_features import IS_OLD, FeatureCluster, feature_cluster

__all__ = ["feature_cluster"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


async def tool(cluster: FeatureCluster, *command: str) -> tuple[int, str]:
    """Run Kafka's FeatureCommand; return its exit code and its output."""
    arguments = ("--bootstrap-server", cluster.controller.address, *command)
    done = await asyncio.to_thread(run_tool, FEATURES, *arguments)
    return done.returncode, done.stdout + done.stderr


def refusal(cluster: FeatureCluster) -> str:
    """Return the reason why f cannot be finalized at 3."""
    return str(cluster.update(("f", 3, UpgradeType.UPGRADE), validate_only=True)["f"][1])


async def test_the_client_and_kafka_s_tool_read_what_the_other_has_finalized(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("g", 1)
    admin = AdminClient({"bootstrap.servers": feature_cluster.controller.address})
    await admin.update_features([FeatureUpdate(feature="f", level=3)])
    code, said = await tool(feature_cluster, "upgrade", "--feature", "f=3")
    assert code != 0
    assert "from existing versionLevel:3 to the same value" in said
    code, said = await tool(feature_cluster, "downgrade", "--feature", "f=2")
    assert code == 0, said
    found = await admin.describe_features()
    assert (dict(found.finalized), found.epoch) == ({"f": 2, "g": 1}, 3)
    await admin.delete_features(["g"])
    code, said = await tool(feature_cluster, "disable", "--feature", "g")
    assert code != 0, "the client has deleted it"


async def test_both_are_told_which_brokers_stand_in_the_way(feature_cluster: FeatureCluster) -> None:
    """One broker is old, and one advertises nothing, like stock brokers."""
    feature_cluster.finalize("f", 1)
    feature_cluster.finalize(
        "f", 0, UpgradeType.SAFE_DOWNGRADE
    )  # brokers that do not support the finalized level are left out
    feature_cluster.register(3, IS_OLD)
    feature_cluster.register(4, {})
    admin = AdminClient({"bootstrap.servers": feature_cluster.controller.address})
    await asyncio.to_thread(wait_until, lambda: "broker 4" in refusal(feature_cluster), "both are seen")
    named = "broker 3 supports 1 to 2; broker 4 supports none"
    with pytest.raises(Refused, match=named):
        await admin.update_features([FeatureUpdate(feature="f", level=3)])
    code, said = await tool(feature_cluster, "upgrade", "--feature", "f=3")
    assert code != 0
    assert named in said
