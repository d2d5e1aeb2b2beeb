"""A cluster without ZooKeeper with TLS, a login or a certificate, and ACLs.

The operator's user has exactly the rights that docs/versions.md names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient

from devcluster.clusters.certificates import Authority
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.security import CLUSTER, LOCAL, MODULE, TOPIC, add_rules, login, rule, tls
from tests.real.operator.operated import Objects, Operator, operate_namespace, run_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

PASSWORD: Final = "operator secret"
LISTENERS: Final = ListenerNames(
    inter_broker="INTERNAL", clients="LOGIN", others=("TLS",), protocols={"LOGIN": "SASL_SSL", "TLS": "SSL"}
)
PRINCIPALS: Final = ("User:operator", "User:CN=operator")
DOCUMENTED: Final = (
    *((CLUSTER, "kafka-cluster", each) for each in ("DESCRIBE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")),
    *((TOPIC, "*", each) for each in ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CREATE", "ALTER", "DELETE")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """The cluster, the authority of its certificates, and the files of its clients."""

    cluster: KRaftCluster
    authority: Authority
    other_authority: Authority
    folder: Path
    admin: AdminClient
    """A client of a super user."""

    def servers(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{broker.ports[listener]}" for broker in self.cluster.brokers.values())

    def file(self, listener: str, **changed: str) -> Path:
        """Write the file of a listener's client; in the names of changed properties `_` stands for `.`."""
        own = self.authority.issue("operator")
        told = {
            "bootstrap.servers": self.servers(listener),
            "security.protocol": LISTENERS.protocol(listener),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login("operator", PASSWORD),
            **tls(own, self.authority),
        }
        changes = {name.replace("_", "."): value for name, value in changed.items()}
        return write_properties_file(self.folder / f"{listener.lower()}.properties", {**told, **changes})


@pytest.fixture(scope="module")
def secured(servers_folder: RunFolder) -> Iterator[Secured]:
    """Two brokers and a controller, which reach each other in plain text, as a super user."""
    folder = servers_folder.data("kraft-secured-files")
    authority = Authority(folder)
    properties = {
        "ssl.client.auth": "required",
        **tls(authority.issue("broker", *LOCAL), authority),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{MODULE} user_operator="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KRaftCluster(
        servers_folder, brokers=2, controllers=1, name="kraft-secured", listeners=LISTENERS, properties=properties
    ) as cluster:
        admin = AdminClient(
            {"bootstrap.servers": ",".join(f"127.0.0.1:{each.ports['INTERNAL']}" for each in cluster.brokers.values())}
        )
        add_rules(admin, *(rule(who, *what) for who in PRINCIPALS for what in DOCUMENTED))
        yield Secured(
            cluster=cluster,
            authority=authority,
            other_authority=Authority(folder / "other"),
            folder=folder,
            admin=admin,
        )


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, secured: Secured) -> Iterator[Objects]:
    """KafkaClusters of one cluster: `demo` for the listener with a login, and `certified` for the one with a
    certificate.
    """
    with operate_namespace(kubernetes_api, bootstrapServers=secured.servers("LOGIN")) as found:
        found.apply("KafkaCluster", "certified", {"bootstrapServers": secured.servers("TLS")})
        yield found


@pytest.fixture(scope="module")
def operator(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects, secured: Secured
) -> Iterator[Operator]:
    files = ",".join(str(secured.file(listener)) for listener in ("LOGIN", "TLS"))
    with run_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": files}) as running:
        yield running
        assert PASSWORD not in running.log()


def topic(objects: Objects, name: str, **spec: Any) -> None:
    objects.apply("KafkaTopic", name, {"partitions": 1, "replicationFactor": 1, **spec})


@pytest.mark.parametrize("cluster", ["demo", "certified"])
def test_a_topic_is_made_changed_and_deleted_with_the_documented_rights(
    operator: Operator, objects: Objects, secured: Secured, cluster: str
) -> None:
    name = f"by-{cluster}"
    topic(objects, name, clusterRef={"name": cluster}, deletionPolicy="Delete")
    objects.wait_ready("kafkatopic", name)
    changed = {"partitions": 2, "replicationFactor": 2, "config": {"retention.ms": "9000"}}
    topic(objects, name, clusterRef={"name": cluster}, deletionPolicy="Delete", **changed)
    objects.wait_ready("kafkatopic", name)
    objects.delete("kafkatopic", name)
    objects.wait_gone("kafkatopic", name)
    wait_until(lambda: name not in secured.admin.list_topics(timeout=60).topics, "the brokers have deleted it")


def test_a_topic_that_may_not_be_described_is_not_taken_for_one_that_is_gone(
    operator: Operator, objects: Objects, secured: Secured
) -> None:
    name = "hidden"
    topic(objects, name, deletionPolicy="Delete")
    objects.wait_ready("kafkatopic", name)
    add_rules(secured.admin, rule("User:operator", TOPIC, name, "ALL", allows=False))
    objects.wait_ready("kafkatopic", name, "False")
    objects.delete("kafkatopic", name)
    objects.wait_gone("kafkatopic", name)
    wait_until(lambda: "DeletionForbidden" in objects.events(name), "it is said that the topic stays")
    assert name in secured.admin.list_topics(timeout=60).topics


@pytest.mark.parametrize(
    ("listener", "asked", "wrong", "words"),
    [
        ("LOGIN", (0,), "password", "Invalid username or password"),
        ("LOGIN", (1,), "authority", "certificate verify failed"),
        ("TLS", (0,), "authority", "certificate verify failed"),
        ("TLS", (1,), "expired", "ssl.keystore"),
        ("TLS", (1, 0), "unknown", "ssl.keystore"),
    ],
)
def test_whom_brokers_do_not_admit_hears_why_and_is_admitted_when_the_file_is_right(
    operator: Operator,
    objects: Objects,
    secured: Secured,
    listener: str,
    asked: tuple[int, ...],
    wrong: str,
    words: str,
) -> None:
    """Open connections stay admitted, so each case is a KafkaCluster that is connected for the first time."""
    match wrong:
        case "password":
            secured.file(listener, sasl_jaas_config=login("operator", "another secret"))
        case "authority":
            secured.file(listener, ssl_truststore_location=str(secured.other_authority.certificate))
        case "expired":
            own = secured.authority.issue("expired", days=-1)
            secured.file(listener, ssl_keystore_location=str(own.store()))
        case "unknown":
            own = secured.other_authority.issue("operator")
            secured.file(listener, ssl_keystore_location=str(own.store()))
    name, servers = f"{listener.lower()}-{wrong}", secured.servers(listener).split(",")
    objects.apply("KafkaCluster", name, {"bootstrapServers": ",".join(servers[each] for each in asked)})
    refused = objects.wait_ready("kafkacluster", name, "False", "NotAdmitted")
    assert words in objects.condition("kafkacluster", name)["message"], refused["status"]
    secured.file(listener)
    objects.wait_ready("kafkacluster", name)
    objects.delete("kafkacluster", name)


@pytest.mark.parametrize("listener", ["LOGIN", "TLS"])
def test_commands_reach_brokers_as_a_client_s_file_says(secured: Secured, listener: str) -> None:
    config = ("--command-config", str(secured.file(listener)))
    servers = secured.servers(listener)
    for arguments in (
        ("check", "cluster", "--bootstrap-server", servers),
        ("cluster", "describe", "--bootstrap-server", servers),
        ("ready", "--broker-id", "1", "--bootstrap-server", servers.split(",")[0]),
        ("drain", "--broker-id", "1", "--bootstrap-server", servers),
    ):
        done = run_command(*arguments, *config)
        assert done.returncode == 0, (arguments, done.stdout + done.stderr)
