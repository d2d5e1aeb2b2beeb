"""Who is registered as a broker, asked once: for whoever decides before there is a state of the cluster."""

from controller_core.model.ids import BrokerId
from controller_core.zk import paths
from controller_core.zk.session import ZkSession


async def registered_brokers(zk: ZkSession) -> set[BrokerId]:
    """The ids of the registered brokers, without a watch."""
    names = (await zk.children_many([paths.BROKER_IDS]))[0] or ()
    return {broker_id for name in names if (broker_id := paths.broker_id_named(name)) is not None}
