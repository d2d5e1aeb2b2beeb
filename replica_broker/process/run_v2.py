"""The process of a design v2 broker: the same logs, replicas and answers, without a controller.

The registration is the last step of the start, after the replicas. There is no controlled shutdown: the leaderships
become free when the session ends, and an orderly end closes the session.
"""

import asyncio
from contextlib import AsyncExitStack

import structlog

from controller_core.admin.authorizing.authorization import begin_authorization
from controller_core.controller.loop.clock import SystemClock
from controller_core.model.authorization.acls import ResourceType
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.process.connections import open_secured_brokers, open_zookeeper_session, read_acl_rules
from controller_core.process.signals import run_until_signalled
from controller_core.supervision import run_until_one_ends
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import ZkError, ZkSession
from replica_broker.counters import BrokerCounters
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.controller_channel import ProducerIdBlock
from replica_broker.membership.controller_hosts import ControllerHosts
from replica_broker.membership.node import UNREGISTERED, Node
from replica_broker.membership.registration import Registration
from replica_broker.membership.startup import read_cluster_id
from replica_broker.membership.topic_configs import ZkTopicConfigs
from replica_broker.process.listening import make_listener
from replica_broker.process.metrics import ReplicaGauges, begin_metrics
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.replicas.following.tcp_leader_link import tcp_leader_links
from replica_broker.serving.producer_ids import ProducerIds
from replica_broker.serving.served import Served
from replica_broker.v2.broker.broker import V2Broker, ensure_parents
from replica_broker.v2.broker.isr_writer import V2IsrWriter
from replica_broker.v2.broker.opened_replicas import OpenedReplicas
from replica_broker.v2.broker.producer_id_counter import allocate_producer_ids

log = structlog.get_logger()

_RETRY_S = 0.1


async def run_v2_broker(settings: BrokerProcessSettings) -> None:
    """Run a design v2 broker until SIGTERM or SIGINT. They also end the start.

    Raises `InvalidSettings`, `BrokerIdInUse`, `ClusterHasController`, `ZooKeeperUnreachable`, `DirectoryRefused`,
    `DiskError` if no log directory is usable or the last one fails, and `OSError` for a port.
    """
    await run_until_signalled(_run_until_cancelled(settings))


async def _run_until_cancelled(settings: BrokerProcessSettings) -> None:
    clock, counters = SystemClock(), BrokerCounters()
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
        )
        # v2 has only this process's configuration and Kafka's defaults.
        configs = ZkTopicConfigs(zk, settings.own_configs)
        directories = LogDirectories.open(
            LocalDisk(),
            settings.log_directory,
            broker_id=node.id,
            cluster_id=node.cluster_id,
            config_of=configs.log_config,
            clock=clock,
        )
        replicas = OpenedReplicas(
            settings.replicas,
            directories,
            tcp_leader_links(client_id=f"broker-{node.id}", security=brokers.source_of(settings.between_brokers)),
            V2IsrWriter(zk),
            configs,
            clock,
            is_known=node.metadata.__contains__,
            is_alive=lambda broker: broker in node.metadata.brokers,
            counters=counters,
        )
        directories.on_offline = lambda _: replicas.on_directory_offline()
        stack.callback(lambda: directories.close(replicas.high_watermarks))
        stack.push_async_callback(replicas.close)
        served = Served(
            node=node,
            replicas=replicas,
            directories=directories,
            control=None,
            zk=None,
            configs=configs,
            producer_ids=ProducerIds(lambda: _block_of_producer_ids(zk)),
            authorization=begin_authorization(rules, zk, counters.registry, stack, kinds=tuple(ResourceType)),
            counters=counters,
        )
        listener = make_listener(settings, served, zk, ControllerHosts(zk))
        await listener.start()
        stack.push_async_callback(listener.close)
        gauges = ReplicaGauges(node=node, replicas=replicas, directories=directories)
        await begin_metrics(stack, settings, counters, gauges)
        replicas.start()
        running = _broker(settings, zk, node, replicas).run()
        await run_until_one_ends(running, directories.wait_until_all_failed())


def _broker(settings: BrokerProcessSettings, zk: ZkSession, node: Node, replicas: OpenedReplicas) -> V2Broker:
    registered = Broker(id=node.id, epoch=UNREGISTERED, endpoints=settings.endpoints, rack=settings.rack)
    registration = Registration(zk, node, registered, session_timeout_ms=settings.zookeeper_session_timeout_ms)
    return V2Broker(zk, node, replicas, registration, settings.v2, SystemClock())


async def _block_of_producer_ids(zk: ZkSession) -> ProducerIdBlock:
    """Return a new block of producer ids. Retries until it gets one or the caller gives up."""
    while True:
        try:
            return await allocate_producer_ids(zk)
        except (ZkError, Contended, MalformedZnode) as error:
            log.warning("no producer ids", reason=f"{type(error).__name__}: {error}")
            await asyncio.sleep(_RETRY_S)
