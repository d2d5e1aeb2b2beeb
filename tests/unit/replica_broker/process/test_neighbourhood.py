"""The neighbours that a broker accepts, which it checks before it registers."""

from typing import Any

import pytest

from controller_core.model.ids import BrokerId
from controller_core.process.settings import InvalidSettings
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from replica_broker.membership.registration import encode_own_registration
from replica_broker.membership.startup import ensure_parents
from replica_broker.process.neighbourhood import require_common_listener, require_no_stock_brokers
from replica_broker.process.settings import BrokerProcessSettings, load_settings
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.replica_broker.membership.clusters import broker, endpoint
from tests.unit.replica_broker.process.test_settings import GIVEN

REGISTERED = broker(further=(endpoint("CLIENT", 9103),))
"""A broker with a listener PLAINTEXT, and one CLIENT."""


async def make_neighbour(*, are_ours: bool = False) -> SimulatedSession:
    """A ZooKeeper with one broker, 8."""
    zk = SimulatedZooKeeper().session()
    await ensure_parents(zk)
    encoded = encode_own_registration(REGISTERED, timestamp_ms=0) if are_ours else codecs.encode_broker(REGISTERED)
    await zk.transact([Create(path=paths.broker(BrokerId(8)), data=encoded)])
    return zk


def settings(**changed: Any) -> BrokerProcessSettings:
    return load_settings({**GIVEN, **changed})


async def test_a_listener_that_no_other_broker_has_is_refused_in_words() -> None:
    zk = await make_neighbour()
    with pytest.raises(InvalidSettings, match="has a listener INTERNAL, only CLIENT, PLAINTEXT: set --inter"):
        await require_common_listener(settings(listen="INTERNAL://h:1"), zk)
    await require_common_listener(
        settings(listen=["INTERNAL://h:1", "CLIENT://h:2"], inter_broker_listener="CLIENT"), zk
    )


async def test_the_first_broker_may_have_any_listener_and_one_that_starts_again_another() -> None:
    zk = SimulatedZooKeeper().session()
    await ensure_parents(zk)
    await require_common_listener(settings(listen="INTERNAL://h:1"), zk)
    await require_common_listener(settings(listen="INTERNAL://h:1", id=8), await make_neighbour())


async def test_logs_are_cut_to_high_watermarks_beside_brokers_of_ours_alone() -> None:
    cutting = settings(truncate_to="high-watermark")
    with pytest.raises(
        InvalidSettings, match="may lose messages that stock brokers have committed, and 8 are registered"
    ):
        await require_no_stock_brokers(cutting, await make_neighbour())
    await require_no_stock_brokers(cutting, await make_neighbour(are_ours=True))
    await require_no_stock_brokers(settings(), await make_neighbour())
