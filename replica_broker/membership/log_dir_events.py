"""Notifies the controller that a log directory of this broker failed (KIP-112).

It then asks which replicas are offline.
"""

from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import ConnectionLost, Create, CreateMode, SessionExpired, ZkSession
from replica_broker.membership.looking import wait_until_connected


async def notify_failed_log_dir(zk: ZkSession, broker: BrokerId) -> None:
    """Create the notification. After a lost answer there may be two; the controller then only checks twice."""
    data = codecs.encode_log_dir_event(broker)
    create = Create(path=paths.LOG_DIR_EVENT_PREFIX, data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL)
    while True:
        try:
            await zk.transact([create])
        except (ConnectionLost, SessionExpired):
            await wait_until_connected(zk)
        else:
            return
