"""The operator's connections to ZooKeeper and brokers, by its settings."""

from functools import partial
from typing import Final

from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.learned_limit import LearnedLimitSession
from controller_core.zk.session import ZkSession
from controller_operator.clusters.pool import Connect
from controller_operator.kafka.broker_listeners import BrokerListener, ListenerOf
from controller_operator.kafka.client_files import ClientFiles
from controller_operator.kafka.ensembles import Ensembles
from controller_operator.observation.observation import NotCurrent
from controller_operator.observation.observer import ChrootMissing
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress
from controller_operator.settings import OperatorSettings

_CONNECT_TIMEOUT_MS: Final = 10_000


def make_listener_finder(settings: OperatorSettings, ensembles: Ensembles) -> ListenerOf:
    """Return a function that finds the listener of any cluster's brokers. Raises `InvalidProperties`."""
    files = ClientFiles(settings.properties)
    files.check()

    def listener_of(address: ClusterAddress) -> BrokerListener:
        match address:
            case AtZooKeeper(connect=connect):
                return ensembles.listener_of(connect)
            case AtBrokers():
                return files.listener_of(address)

    return listener_of


def make_zookeeper_connector(settings: OperatorSettings, ensembles: Ensembles | None = None) -> Connect:
    """Return a function that opens ZooKeeper sessions with the timeout of the settings. Raises `InvalidProperties`."""
    ensembles = ensembles or Ensembles(settings.properties)
    ensembles.check()

    async def connect(address: str) -> ZkSession:
        try:
            session = await KazooSession.connect(
                address,
                makes_chroot=False,
                session_timeout_ms=settings.zookeeper_session_timeout_ms,
                connect_timeout_ms=_CONNECT_TIMEOUT_MS,
                jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes,
                security=partial(ensembles.security_of, address),
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
