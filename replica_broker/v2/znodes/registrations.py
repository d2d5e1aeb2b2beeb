"""The online brokers: `/brokers/ids/[broker_id]`, which each writes at the end of its start."""

import structlog

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.zk import codecs
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkSession
from replica_broker.v2.znodes import paths

log = structlog.get_logger()


async def live_brokers(zk: ZkSession) -> list[Broker]:
    """Return the registered brokers by id. Skips unreadable ones. Raises the errors of ZooKeeper."""
    (names,) = await zk.children_many([paths.IDS])
    ids = sorted(BrokerId(int(name)) for name in names or () if name.isdigit())
    found = []
    for broker, node in zip(ids, await zk.read_many([f"{paths.IDS}/{each}" for each in ids]), strict=True):
        try:
            if node is not None:
                found.append(codecs.decode_broker(broker, node))
        except MalformedZnode as error:
            log.error("unreadable registration is ignored", broker=broker, reason=str(error))
    return found
