"""An operator of a cluster without ZooKeeper whose brokers need a login.

Each module has its own cluster, because upgraded features stay upgraded.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from tests.real.kraft.releases import WITH_4_1
from tests.real.operator.operated import Objects, Operator, operate_namespace, run_operator

LISTENERS = ListenerNames(inter_broker="INTERNAL", clients="CLIENT", protocols={"CLIENT": "SASL_PLAINTEXT"})
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "operator secret"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "operator",
    "sasl.password": PASSWORD,
}
"""The settings of a client."""


@pytest.fixture(scope="module", params=WITH_4_1)
def kafka(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers and three controllers, with the features of Kafka 4.0."""
    login = f'{MODULE} user_operator="{PASSWORD}";'
    properties = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.client.plain.sasl.jaas.config": login}
    cluster = KRaftCluster(
        servers_folder,
        name=f"featured-{request.path.stem}-{request.param}",
        release="4.0",
        listeners=LISTENERS,
        properties=properties,
        version=request.param,
    )
    with cluster:
        yield cluster


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KRaftCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
        yield found


@pytest.fixture(scope="module")
def operator(
    servers_folder: RunFolder,
    kubernetes_api: KubernetesCluster,
    objects: Objects,
    kafka: KRaftCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    """The operator, with the login in a file that names the brokers."""
    file: Path = tmp_path_factory.mktemp("properties") / "client.properties"
    file.write_text(
        f"bootstrap.servers={kafka.bootstrap_servers}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="operator" password="{PASSWORD}";\n'
    )
    with run_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": str(file)}) as running:
        yield running
        assert PASSWORD not in running.log()
