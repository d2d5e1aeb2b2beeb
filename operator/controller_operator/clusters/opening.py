"""Opens clusters. The address alone decides if a cluster is one with or without ZooKeeper."""

from collections.abc import Callable

from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import parse_addresses
from controller_operator.clusters.cluster import Cluster
from controller_operator.clusters.pool import Connect, OpenCluster
from controller_operator.clusters.throttle_record import OpenRecord, refuse_record
from controller_operator.clusters.with_zookeeper import ClusterWithZooKeeper
from controller_operator.clusters.without_zookeeper import ClusterWithoutZooKeeper
from controller_operator.kafka.broker_listeners import ListenerOf, OpenClient
from controller_operator.kafka.controller_reach import ControllerReach
from controller_operator.observation.observer import ClusterObserver
from controller_operator.observation.poller import ClusterPoller
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress

OpenPoller = Callable[[AtBrokers, ListenerOf], ClusterPoller]
"""Makes the poller of a cluster without ZooKeeper."""


def make_poller(address: AtBrokers, listener_of: ListenerOf) -> ClusterPoller:
    """Return a poller that asks the brokers at an address over TCP."""
    return ClusterPoller(lambda: _open_kept(address, listener_of))


def open_clusters(
    connect: Connect,
    open_client: OpenClient,
    listener_of: ListenerOf,
    open_poller: OpenPoller = make_poller,
    open_record: OpenRecord = refuse_record,
) -> OpenCluster:
    """Return a function that opens clusters with these sessions, clients, listeners and records of throttles. All of
    them share the knowledge of controllers that do not answer."""
    reach = ControllerReach(open_client)

    def open_cluster(address: ClusterAddress) -> Cluster:
        match address:
            case AtZooKeeper(connect=servers):
                return ClusterWithZooKeeper(ClusterObserver(lambda: connect(servers)), reach)
            case AtBrokers():
                return ClusterWithoutZooKeeper(open_poller(address, listener_of), reach, open_record)

    return open_cluster


def _open_kept(address: AtBrokers, listener_of: ListenerOf) -> tuple[KeptClient, str]:
    listener = listener_of(address)
    return KeptClient(parse_addresses(address.bootstrap_servers), security=listener.security), listener.protocol
