"""The process of a broker from start to end.

The start has the order of stock brokers: ZooKeeper, the finalized features of the cluster, the log directories, the
port, and finally the registration. After it the controller sends commands. The shutdown has the reverse order, after
the controller has moved the leaders away.
"""

from contextlib import AsyncExitStack

import structlog

from controller_core.admin.authorizing.authorization import Authorization, begin_authorization
from controller_core.controller.loop.clock import Clock, SystemClock
from controller_core.model.authorization.acls import ResourceType
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.process.connections import open_secured_brokers, open_zookeeper_session, read_acl_rules
from controller_core.process.signals import run_until_signalled
from controller_core.supervision import run_until_one_ends, start_task
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.listener.listener import Listener
from controller_core.zk.session import ZkSession
from replica_broker.counters import BrokerCounters
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.controlled_shutdown import leave_in_order
from replica_broker.membership.controller_channel import ControllerChannel
from replica_broker.membership.controller_hosts import ControllerHosts, read_controller_epoch
from replica_broker.membership.features import Features
from replica_broker.membership.log_dir_events import notify_failed_log_dir
from replica_broker.membership.node import UNREGISTERED, Node
from replica_broker.membership.registration import Registration
from replica_broker.membership.startup import delete_unassigned, ensure_parents, read_cluster_id
from replica_broker.membership.topic_configs import ZkTopicConfigs
from replica_broker.process.listening import make_listener
from replica_broker.process.metrics import ReplicaGauges, begin_metrics
from replica_broker.process.neighbourhood import require_common_listener, require_no_stock_brokers
from replica_broker.process.own_controller import OwnController
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.replicas.following.tcp_leader_link import tcp_leader_links
from replica_broker.replicas.leading.alter_partition import AlterPartitionWriter
from replica_broker.replicas.leading.state_znode import StateZnodeWriter
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.seams import IsrWriter
from replica_broker.serving.commands.control import Control
from replica_broker.serving.producer_ids import ProducerIds
from replica_broker.serving.served import Served

log = structlog.get_logger()


async def run_broker(settings: BrokerProcessSettings) -> None:
    """Run a broker until SIGTERM or SIGINT. They also end the start.

    Raises `InvalidSettings`, `BrokerIdInUse`, `IncompatibleFeatures` (at the start, or when the cluster finalizes a
    feature that this broker does not support), `ZooKeeperUnreachable`, `DirectoryRefused`, `DiskError` if no log
    directory is usable or the last one fails, and `OSError` for a port.
    """
    await run_until_signalled(_run_until_cancelled(settings))


async def _run_until_cancelled(settings: BrokerProcessSettings) -> None:
    brokers = open_secured_brokers(settings.properties, settings.between_brokers)
    rules = read_acl_rules(settings.properties)
    async with AsyncExitStack() as stack:
        zk = await open_zookeeper_session(settings)
        stack.push_async_callback(zk.close)
        await ensure_parents(zk)
        node = Node(
            id=BrokerId(settings.id),
            cluster_id=await read_cluster_id(zk),
            rack=settings.rack,
            inter_broker_listener=settings.between_brokers,
            supported_features=settings.features,
        )
        broker = _broker(settings)
        features = Features(zk, node, broker)
        await features.check()
        await require_no_stock_brokers(settings, zk)
        await require_common_listener(settings, zk)
        counters = BrokerCounters()
        authorization = begin_authorization(rules, zk, counters.registry, stack, kinds=tuple(ResourceType))
        await _Process(settings, zk, node, broker, features, brokers, counters, authorization).run(stack)


class _Process:
    """A broker process whose features and settings fit the cluster."""

    def __init__(
        self,
        settings: BrokerProcessSettings,
        zk: ZkSession,
        node: Node,
        broker: Broker,
        features: Features,
        others: SecuredBrokers,
        counters: BrokerCounters,
        authorization: Authorization | None,
    ) -> None:
        """Initialize the process; `others` has the security settings for connections to other servers."""
        self._settings = settings
        self._zk = zk
        self._node = node
        self._features = features
        self._clock: Clock = SystemClock()
        self._counters = counters
        self._authorization = authorization
        self._controller_hosts = ControllerHosts(zk)
        self._configs = ZkTopicConfigs(zk, settings.own_configs)
        self._channel = ControllerChannel(node, security=others.source)
        self._others = others
        self._registration = Registration(zk, node, broker, session_timeout_ms=settings.zookeeper_session_timeout_ms)

    async def run(self, stack: AsyncExitStack) -> None:
        await self._configs.load()
        directories = await self._open_directories()
        replicas = self._replicas(directories)
        directories.on_offline = lambda _: replicas.on_directory_offline()
        stack.callback(lambda: directories.close(replicas.high_watermarks))
        stack.push_async_callback(replicas.close)
        listener = self._listener(replicas, directories)
        await listener.start()
        stack.push_async_callback(listener.close)
        gauges = ReplicaGauges(node=self._node, replicas=replicas, directories=directories)
        await begin_metrics(stack, self._settings, self._counters, gauges)
        replicas.start()
        controller = OwnController(self._settings.controller)
        controller.begin()
        # Pushed last, so it ends before the replicas close, but after the controlled shutdown below, which may need
        # it.
        stack.push_async_callback(controller.end)
        try:
            await run_until_one_ends(
                self._be_a_member(replicas), controller.keep(), directories.wait_until_all_failed()
            )
        finally:
            if self._node.epoch != UNREGISTERED and directories.live_paths:
                pause_s = self._settings.controlled_shutdown_retry_backoff_ms / 1000
                await leave_in_order(self._channel, pause_s=pause_s)

    async def _be_a_member(self, replicas: Replicas) -> None:
        await self._registration.register()
        await run_until_one_ends(
            self._registration.keep(),
            self._features.keep(),
            self._configs.keep(replicas.on_topic_configs_changed),
            self._controller_hosts.keep(),
        )

    async def _open_directories(self) -> LogDirectories:
        """Open the log directories and delete the logs of partitions that are now assigned to other brokers."""
        directories = LogDirectories.open(
            LocalDisk(),
            self._settings.log_directory,
            broker_id=self._node.id,
            cluster_id=self._node.cluster_id,
            config_of=lambda topic: self._configs.log_config(topic),
            clock=self._clock,
        )
        await delete_unassigned(self._zk, self._node.id, directories)
        return directories

    def _replicas(self, directories: LogDirectories) -> Replicas:
        settings = self._settings.replicas
        writer: IsrWriter = (
            StateZnodeWriter(self._zk, settings, self._clock)
            if settings.isr_writes == "ZooKeeper"
            else AlterPartitionWriter(self._channel)
        )
        return Replicas(
            settings,
            directories,
            tcp_leader_links(
                client_id=f"broker-{self._node.id}",
                security=self._others.source_of(self._settings.between_brokers),
            ),
            writer,
            self._configs,
            self._clock,
            is_known=self._node.metadata.__contains__,
            is_alive=lambda broker: broker in self._node.metadata.brokers,
            on_directory_failed=self._tell_of_failed_directory,
            counters=self._counters,
        )

    def _listener(self, replicas: Replicas, directories: LogDirectories) -> Listener:
        served = Served(
            node=self._node,
            replicas=replicas,
            directories=directories,
            control=Control(self._node, replicas, self._configs.load_topics, lambda: read_controller_epoch(self._zk)),
            configs=self._configs,
            producer_ids=ProducerIds(self._channel.allocate_producer_ids),
            zk=self._zk,
            authorization=self._authorization,
            counters=self._counters,
        )
        return make_listener(self._settings, served, self._zk, self._controller_hosts)

    def _tell_of_failed_directory(self) -> None:
        start_task(notify_failed_log_dir(self._zk, self._node.id), name="tell of a failed log directory")


def _broker(settings: BrokerProcessSettings) -> Broker:
    return Broker(
        id=BrokerId(settings.id),
        epoch=UNREGISTERED,
        endpoints=settings.endpoints,
        rack=settings.rack,
        features=settings.features,
    )
