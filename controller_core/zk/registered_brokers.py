"""Reads the registered brokers once, for decisions that are made before the state of the cluster is known."""

from controller_core.model.ids import BrokerId
from controller_core.zk import paths
from controller_core.zk.session import ZkSession


async def read_registered_brokers(zk: ZkSession) -> set[BrokerId]:
    """Return the ids of the registered brokers, without a watch."""
    names = (await zk.children_many([paths.BROKER_IDS]))[0] or ()
    return {broker_id for name in names if (broker_id := paths.parse_broker_id(name)) is not None}
