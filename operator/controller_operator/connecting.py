"""The operator's connections to ZooKeeper, by its settings."""

from functools import partial
from typing import Final

from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.learned_limit import LearnedLimitSession
from controller_core.zk.session import ZkSession
from controller_operator.clusters.pool import Connect
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.observation.observation import NotCurrent
from controller_operator.observation.observer import ChrootMissing
from controller_operator.settings import OperatorSettings

_CONNECT_TIMEOUT_MS: Final = 10_000


def make_zookeeper_connector(settings: OperatorSettings, files: ClusterFiles) -> Connect:
    """Return a function that opens ZooKeeper sessions with the timeout of the settings and the security of the files."""

    async def connect(address: str) -> ZkSession:
        try:
            session = await KazooSession.connect(
                address,
                makes_chroot=False,
                session_timeout_ms=settings.zookeeper_session_timeout_ms,
                connect_timeout_ms=_CONNECT_TIMEOUT_MS,
                jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes,
                security=partial(files.security_of, address),
            )
        except (ValueError, InvalidProperties) as error:
            raise NotCurrent(str(error)) from error
        try:
            await _require_chroot(address, session)
        except BaseException:
            await session.close()
            raise
        return LearnedLimitSession(session)

    return connect


async def _require_chroot(address: str, session: ZkSession) -> None:
    """Refuse a missing chroot. Only brokers create one, and a mistyped chroot would look like an empty cluster."""
    (root,) = await session.read_many(["/"])
    if root is None:
        chroot = address.partition("/")[2]
        raise ChrootMissing(f"there is no /{chroot}: use the chroot of the brokers' zookeeper.connect, or start them")
