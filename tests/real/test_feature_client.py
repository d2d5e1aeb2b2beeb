"""The client's part of features when updates succeed: registrations with ranges, a real ZooKeeper, our controller."""

import asyncio
import json
import signal

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import InvalidArgument, Refused, UpdateInProgress
from controller_core.client.features import FeatureUpdate, SupportedRange, UpdateType
from tests.real.conformance.client.commands import Kontroller
from tests.real.test_features import IS_OLD, FeatureCluster, feature_cluster

__all__ = ["feature_cluster"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

ADD, LOWER = UpdateType.ADD_OR_UPDATE, UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE


def make_update(feature: str, level: int, type_: UpdateType = ADD) -> FeatureUpdate:
    return FeatureUpdate(feature=feature, level=level, type=type_)


@pytest.fixture
def admin(feature_cluster: FeatureCluster) -> AdminClient:
    feature_cluster.finalize("f", 1)  # the controller has its role now
    return AdminClient({"bootstrap.servers": feature_cluster.controller.address})


async def test_levels_are_finalized_lowered_and_deleted_all_at_once(
    feature_cluster: FeatureCluster, admin: AdminClient
) -> None:
    before = await admin.describe_features(of_controller=True)
    assert (dict(before.finalized), before.epoch, before.updates_are_atomic) == ({"f": 1}, 1, True)
    assert dict(before.supported) == {
        "f": SupportedRange(min_version=1, max_version=5), "g": SupportedRange(min_version=1, max_version=2)
    } or before.supported == {}  # fmt: skip
    after = await admin.update_features([make_update("f", 3), make_update("g", 2, LOWER)])
    assert (dict(after.finalized), after.epoch) == ({"f": 3, "g": 2}, 2), "one write for both"
    lowered = await admin.update_features([make_update("f", 2, LOWER)])
    assert (dict(lowered.finalized), lowered.epoch) == ({"f": 2, "g": 2}, 3)
    deleted = await admin.delete_features(["f", "g"])
    assert (dict(deleted.finalized), deleted.epoch) == ({}, 4)
    assert feature_cluster.read_finalized() == ({}, 4)


async def test_one_that_cannot_be_keeps_all_from_being_written_and_the_broker_in_the_way_is_named(
    feature_cluster: FeatureCluster, admin: AdminClient
) -> None:
    feature_cluster.register(3, IS_OLD)
    before = feature_cluster.read_finalized()
    with pytest.raises(Refused, match="broker 3 supports 1 to 2") as refused:
        await admin.update_features([make_update("g", 1), make_update("f", 3)])
    assert refused.value.code is ErrorCode.invalid_request
    with pytest.raises(Refused, match="because f2 cannot be"):
        await admin.update_features([make_update("f", 2), make_update("g", 1), make_update("f2", 1)])
    with pytest.raises(Refused):
        await admin.delete_features(["f", "nowhere"])
    assert feature_cluster.read_finalized() == before


async def test_what_makes_no_sense_is_refused_before_it_is_sent(admin: AdminClient) -> None:
    for updates, why in (
        ([], "no feature"),
        ([make_update("f", 2), make_update("f", 3)], "twice"),
        ([make_update("f", 0)], "cannot be finalized at 0"),
        ([make_update("f", 1 << 15)], "choose 1 to 32767"),
        ([make_update("", 1)], "empty name"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            await admin.update_features(updates)
    working = asyncio.create_task(admin.update_features([make_update("f", 2)]))
    await asyncio.sleep(0)
    with pytest.raises(UpdateInProgress, match="await it"):
        await admin.update_features([make_update("f", 3)])
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (await admin.update_features([make_update("f", 4)])).finalized["f"] == 4


def test_the_tool_asks_twice_and_prints_what_the_cluster_says_then(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 4)
    kontroller = Kontroller(feature_cluster.controller.address)
    update = ("features", "update", "--feature-upgrade", "g:1", "--feature-force-downgrade", "f:3")
    terminal = kontroller.start_at_terminal(*update)
    said = terminal.wait_for("[Y/n]?")
    title = "Please confirm before finalizing the upgrade of the following features:"
    assert f"{title}\n1. g from none (existing) to v1 (new)\n" in said
    terminal.type("Y\n")
    said = terminal.wait_for("[Y/n]?")
    title = "Please confirm before downgrading the following features:"
    assert f"{title}\n1. f from v4 (existing) to v3 (new)\n" in said
    terminal.type("\n")
    ended = terminal.end()
    assert ended.code == 0, ended
    printed = json.loads(ended.out[ended.out.index("{") :])
    assert printed["finalized_features"] == {"epoch": 2, "f": {"version": 3}, "g": {"version": 1}}
    assert f"{printed['host']}:{printed['port']}" == feature_cluster.controller.address
    terminal = kontroller.start_at_terminal(*update)
    terminal.wait_for("[Y/n]?")
    terminal.type("y\n")
    terminal.wait_for("[Y/n]?")
    terminal.type("no\n")
    assert terminal.end().code == 1
    assert feature_cluster.read_finalized() == ({"f": 3, "g": 1}, 2), "whoever says no to the second has none done"
    disabled = kontroller.run("features", "disable", "--features", "f, g", "--yes")
    assert disabled.code == 0, disabled
    assert feature_cluster.read_finalized() == ({}, 3)


def test_ctrl_c_at_the_second_question_changes_nothing(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 4)
    kontroller = Kontroller(feature_cluster.controller.address)
    terminal = kontroller.start_at_terminal(
        "features", "update", "--feature-upgrade", "g:1", "--feature-force-downgrade", "f:3"
    )
    terminal.wait_for("[Y/n]?")
    terminal.type("y\n")
    terminal.wait_for("[Y/n]?")
    terminal.process.send_signal(signal.SIGINT)
    ended = terminal.end()
    assert ended.code == 130
    assert "interrupted: nothing is changed" in ended.out
    assert feature_cluster.read_finalized()[0] == {"f": 4}


def test_levels_that_change_while_somebody_confirms_are_confirmed_anew(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 2)
    terminal = Kontroller(feature_cluster.controller.address).start_at_terminal(
        "features", "update", "--feature-force-downgrade", "f:1"
    )
    assert "1. f from v2 (existing) to v1 (new)" in terminal.wait_for("[Y/n]?")
    feature_cluster.finalize("f", 5)
    terminal.type("y\n")
    ended = terminal.end()
    assert ended.code == 1
    assert "The change would now be: f from v5 (existing) to v1 (new); run the command again" in ended.out
    assert feature_cluster.read_finalized()[0] == {"f": 5}


def test_a_document_is_all_that_a_program_reads(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 1)
    kontroller = Kontroller(feature_cluster.controller.address)
    updated = kontroller.run("features", "update", "--feature-upgrade", "f:2", "--yes")
    assert (updated.code, updated.json()["finalized_features"]) == (0, {"epoch": 2, "f": {"version": 2}}), updated
    assert "Please confirm before finalizing the upgrade" in updated.err
    table = kontroller.run("features", "describe", "--controller", "-o", "table")
    assert "FEATURE   FINALIZED   SUPPORTED" in table.out


def test_the_shell_completes_features_of_the_cluster(feature_cluster: FeatureCluster) -> None:
    feature_cluster.finalize("f", 1)
    feature_cluster.finalize("g", 1)
    shell = Kontroller(feature_cluster.controller.address).start_at_terminal("shell")
    shell.wait_for_prompt()
    shell.type("features disable --features \t\t")
    said = shell.wait_for("\n g ")
    assert "\n f " in said
    shell.type("\x03")
    shell.wait_for_prompt()
    shell.type("exit\n")
    assert shell.end().code == 0
