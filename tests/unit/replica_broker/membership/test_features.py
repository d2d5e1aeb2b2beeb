"""The finalized features of the cluster decide if a broker may be a member."""

import asyncio

import pytest

from controller_core.zk import codecs, paths
from controller_core.zk.codecs import FeatureZnode
from controller_core.zk.session import Create, SetData
from replica_broker.membership.features import Features, IncompatibleFeatures
from tests.unit.replica_broker.membership.clusters import Joining, broker

DEADLINE_S = 10


def features(joining: Joining) -> Features:
    return Features(joining.zk, joining.node, broker(features={"f": (1, 3)}))


async def finalize(joining: Joining, levels: dict[str, int], *, is_enabled: bool = True) -> None:
    data = codecs.encode_features(FeatureZnode(features=levels, is_enabled=is_enabled))
    present = await joining.read(paths.FEATURE)
    op = Create(path=paths.FEATURE, data=data) if present is None else SetData(path=paths.FEATURE, data=data)
    await joining.zk.transact([op])


async def test_a_cluster_without_features_takes_everybody(joining: Joining) -> None:
    await features(joining).check()
    assert joining.node.finalized_features is None


async def test_what_is_finalized_is_told_with_the_version_of_the_znode_as_its_epoch(joining: Joining) -> None:
    await finalize(joining, {"f": 2})
    await finalize(joining, {"f": 3})
    await features(joining).check()
    assert joining.node.finalized_features is not None
    assert (joining.node.finalized_features.features, joining.node.finalized_features.epoch) == ({"f": 3}, 1)


@pytest.mark.parametrize("levels", [{"f": 4}, {"g": 1}])
async def test_a_level_that_is_not_supported_keeps_the_broker_out(joining: Joining, levels: dict[str, int]) -> None:
    await finalize(joining, levels)
    with pytest.raises(IncompatibleFeatures, match=r"broker 3 is not compatible .* is finalized at"):
        await features(joining).check()


async def test_features_that_are_disabled_keep_nobody_out(joining: Joining) -> None:
    await finalize(joining, {"f": 4}, is_enabled=False)
    await features(joining).check()


async def test_a_znode_that_makes_no_sense_says_nothing(joining: Joining) -> None:
    await joining.zk.transact([Create(path=paths.FEATURE, data=b"nonsense")])
    await features(joining).check()
    assert joining.node.finalized_features is None


async def test_a_member_leaves_when_a_level_is_finalized_that_it_does_not_support(joining: Joining) -> None:
    await finalize(joining, {"f": 2})
    keeping = asyncio.create_task(features(joining).keep())
    async with asyncio.timeout(DEADLINE_S):
        while joining.node.finalized_features is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
        await finalize(joining, {"f": 4})
        with pytest.raises(IncompatibleFeatures):
            await keeping
