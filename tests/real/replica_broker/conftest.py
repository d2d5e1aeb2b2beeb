"""Stock brokers and ours, once under Kafka's own controller and once under ours; without security, and with ACLs."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from tests.real.replica_broker.mixed import OURS, MixedCluster

_PROPERTIES = {"controlled.shutdown.retry.backoff.ms": 200}
CONTROLLERS = ("kafka", "kontroller")
THE_STOCK_ONE = 1
"""The only stock broker of `authorizing`."""
LISTENERS = ListenerNames(
    inter_broker="INTERNAL",
    clients="CLIENT",
    others=("OPEN",),
    protocols={"INTERNAL": "SASL_PLAINTEXT", "CLIENT": "SASL_PLAINTEXT"},
)


@pytest.fixture(scope="package", params=CONTROLLERS)
def started(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[MixedCluster]:
    name = f"mixed-{request.param}"
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=2, properties=_PROPERTIES, chroot=f"/{name}") as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as stack,
    ):
        own = None
        if request.param == "kontroller":
            own = ControllerProcess(servers_folder, kafka.zookeeper_connect, name=f"{name}-controller")
            stack.enter_context(own)
        settings = {"controlled_shutdown_retry_backoff_ms": 200}
        ours = PythonBroker(servers_folder, kafka.zookeeper_connect, OURS, name=f"{name}-ours", settings=settings)
        stack.enter_context(ours)
        yield MixedCluster(kafka=kafka, ours=ours, znodes=ClusterZnodes(client), own_controller=own)


@pytest.fixture
def cluster(started: MixedCluster) -> Iterator[MixedCluster]:
    """The cluster with all brokers alive. Nothing unexpected may happen to our broker."""
    started.start_all()
    yield started
    log = started.ours.log()
    for words in ("failed unexpectedly", "could not be answered", "Traceback", "bad request"):
        assert words not in log, f"the broker's log has {words!r}: {started.ours.process.log_path}"


@pytest.fixture(scope="module", params=CONTROLLERS)
def authorizing(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[MixedCluster]:
    """A stock broker and ours with the same ACLs. Each logs in at the other as a super user."""
    name = f"authorizing-{request.param}"
    with zookeeper.client() as maker:
        maker.ensure_path(f"/{name}")
    with ExitStack() as stack:
        kafka = SecuredKafka(servers_folder, zookeeper, listeners=LISTENERS, name=name, authorizes=True, brokers=1)
        stack.callback(kafka.close)
        file = kafka.write_properties(
            "nodes.properties",
            **{key.replace(".", "_"): value for key, value in kafka.authorizer.items()},
            sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
        )
        secured = {"properties": str(file)}
        own = None
        if request.param == "kontroller":
            own = ControllerProcess(
                servers_folder,
                kafka.zookeeper_connect,
                name=f"{name}-controller",
                settings=secured,
                listeners=LISTENERS,
            )
            stack.enter_context(own)
        kafka.start()
        client = stack.enter_context(open_client(kafka.zookeeper_connect))
        ours = PythonBroker(
            servers_folder,
            kafka.zookeeper_connect,
            OURS,
            name=f"{name}-ours",
            settings=secured,
            listeners=LISTENERS,
        )
        stack.enter_context(ours)
        made = MixedCluster(kafka=kafka, ours=ours, znodes=ClusterZnodes(client), own_controller=own)
        made.serve_topic("orders", [[OURS, THE_STOCK_ONE], [THE_STOCK_ONE, OURS]])
        yield made
