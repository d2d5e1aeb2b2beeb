"""Brokers and clients with authentication at the controller: certificates, passwords, or SCRAM.

The brokers have no PLAINTEXT listener at all: their requests to the controller, and those of clients, need
authentication.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import AdminError, Refused
from devcluster.clients import tools
from devcluster.clients.identity import Identity
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ADMIN, ALICE, CLIENT, PASSWORDS, SecuredKafka, write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_in_sync, wait_until_logged

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROTOCOLS: Final = {
    "certificates": ("SSL", ""),
    "passwords": ("SASL_PLAINTEXT", "PLAIN"),
    "proofs": ("SASL_SSL", "SCRAM-SHA-512"),
}
AUTHORIZER: Final = {
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": f"User:{ADMIN}",
}
MECHANISMS: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"


class Site:
    """Brokers, and a controller with the same listeners."""

    def __init__(self, folder: RunFolder, zookeeper: ZooKeeper, kind: str, *, authorizes: bool = False) -> None:
        name = f"listening-{kind}-authorizing" if authorizes else f"listening-{kind}"
        self.protocol, self.mechanism = PROTOCOLS[kind]
        self.listeners = ListenerNames(
            inter_broker="INTERNAL", clients="CLIENT", protocols=dict.fromkeys(("INTERNAL", "CLIENT"), self.protocol)
        )
        self.kafka = SecuredKafka(
            folder,
            zookeeper,
            listeners=self.listeners,
            name=name,
            authorizes=authorizes,
            mechanism=self.mechanism or "SCRAM-SHA-512",
            properties={"offsets.topic.replication.factor": 2, "offsets.topic.num.partitions": 2},
        )
        self.file = self.kafka.write_properties(
            sasl_enabled_mechanisms=MECHANISMS,
            ssl_client_auth="required",
            **(AUTHORIZER if authorizes else {}),
        )
        self.controller = ControllerProcess(
            folder,
            self.kafka.zookeeper_connect,
            name=f"{name}-controller",
            settings={"properties": str(self.file)},
            listeners=self.listeners,
        )

    @property
    def bootstrap(self) -> str:
        """The addresses for clients: the brokers and the controller."""
        return f"{self.kafka.bootstrap_servers},{self.controller.address}"

    @property
    def log(self) -> str:
        return self.controller.process.log_path.read_text()

    def client_file(self, name: str = "client.properties", *, without: str = "nothing") -> Path:
        """Write the properties of Kafka's own tools, without those that begin with `without`."""
        told = self.kafka.client_properties("CLIENT", mechanism=self.mechanism or "SCRAM-SHA-512")
        return write_properties_file(
            self.kafka.files / name, {key: value for key, value in told.items() if not key.startswith(without)}
        )

    @property
    def identity(self) -> Identity:
        """Alice's login, or the client's certificate."""
        return self.kafka.identity("CLIENT", mechanism=self.mechanism)

    def librdkafka(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, **self.identity.librdkafka}

    def kafka_python(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap.split(","), **self.identity.kafka_python}

    def admin(self, bootstrap: str | None = None, *, user: str = ALICE, **changed: str) -> AdminClient:
        told = self.kafka.client_properties("CLIENT", user=user, mechanism=self.mechanism or "SCRAM-SHA-512")
        return AdminClient({"bootstrap.servers": bootstrap or self.bootstrap, **told, **changed})

    def allow_alice(self) -> None:
        """Allow alice to create topics, by an ACL in the brokers' format."""
        allowed = {"principal": f"User:{ALICE}", "permissionType": "Allow", "operation": "Create", "host": "*"}
        with open_client(self.kafka.zookeeper_connect) as client:
            data = json.dumps({"version": 1, "acls": [allowed]}).encode()
            client.create("/kafka-acl/Cluster/kafka-cluster", data, makepath=True)
            client.create("/kafka-acl-changes/acl_changes_", b"Cluster:kafka-cluster", sequence=True, makepath=True)

    def isr(self, topic: str, partition: int) -> list[int]:
        """Return the ISR in ZooKeeper."""
        with open_client(self.kafka.zookeeper_connect) as client:
            state, _ = client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return sorted(json.loads(state)["isr"])


@pytest.fixture(
    scope="module",
    params=PROTOCOLS,
)
def site(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    made = Site(servers_folder, zookeeper, request.param)
    with made.kafka, made.controller:
        made.kafka.start()
        yield made
        assert not any(password in made.log for password in PASSWORDS.values())


def tool(
    site: Site, main_class: str, *arguments: str, config: str = "--command-config", stdin: str | None = None
) -> str:
    done = tools.run_tool(
        main_class, "--bootstrap-server", site.bootstrap, *arguments, config, str(site.client_file()), stdin=stdin
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_own_tools_create_produce_and_consume(site: Site) -> None:
    topic = ("--topic", "tools")
    tool(site, tools.TOPICS, "--create", *topic, "--partitions", "4", "--replication-factor", "2")
    tool(site, tools.CONSOLE_PRODUCER, *topic, config="--producer.config", stdin="one\ntwo\nthree\n")
    read = tool(
        site, tools.CONSOLE_CONSUMER, *topic, "--from-beginning", "--max-messages", "3", "--group", "tools",
        "--timeout-ms", "40000", config="--consumer.config",
    )  # fmt: skip
    assert sorted(read.split()) == ["one", "three", "two"]
    assert "PartitionCount: 4" in tool(site, tools.TOPICS, "--describe", *topic)
    assert "tools" in tool(site, tools.CONSUMER_GROUPS, "--list")
    tool(
        site,
        tools.CONFIGS,
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        "tools",
        "--add-config",
        "retention.ms=1",
    )


def test_librdkafka_produces_with_ids_that_the_controller_gave_and_consumes(site: Site) -> None:
    asyncio.run(site.admin().create_topic("rdkafka", 4, 2))
    failed: list[Any] = []
    producer = Producer({**site.librdkafka(), "enable.idempotence": True})
    for number in range(100):
        producer.produce("rdkafka", str(number), on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(60) == 0
    assert not failed
    consumer = Consumer({**site.librdkafka(), "group.id": "rdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rdkafka"])
    read: set[bytes] = set()

    def has_read_all() -> bool:
        read.update(message.value() or b"" for message in consumer.consume(100, 1) if message.error() is None)
        return len(read) == 100

    wait_until(has_read_all, "all that was produced is read")
    consumer.close()


def test_kafka_python_creates_produces_and_consumes(site: Site) -> None:
    admin = KafkaAdminClient(**site.kafka_python())
    admin.create_topics([NewTopic("python", 4, 2)])
    producer = KafkaProducer(**site.kafka_python())
    for number in range(20):
        producer.send("python", str(number).encode()).get(60)
    producer.close()
    consumer = KafkaConsumer(
        "python", group_id="python", auto_offset_reset="earliest", consumer_timeout_ms=40_000, **site.kafka_python()
    )
    read = {next(consumer).value for _ in range(20)}
    assert read == {str(number).encode() for number in range(20)}
    consumer.close()
    admin.close()


def test_who_asks_the_controller_alone_creates_topics_and_is_shown_the_brokers(site: Site) -> None:
    async def ask_controller() -> None:
        admin = site.admin(site.controller.address)
        await admin.create_topic("alone", 1, 2)
        described = await admin.describe_cluster()
        assert described.brokers.keys() == {1, 2, site.controller.controller_id}

    asyncio.run(ask_controller())


def test_what_brokers_ask_of_their_controller_arrives(site: Site) -> None:
    """A returning follower causes AlterPartition, a stopping broker ControlledShutdown."""
    asyncio.run(site.admin().create_topic("moved", replica_assignment="1:2"))
    wait_until_in_sync(site, "moved", 1, 2)
    site.kafka.broker(2).stop()
    wait_until_in_sync(site, "moved", 1)
    assert "controlled shutdown" in site.log
    site.kafka.broker(2).start()
    wait_until_in_sync(site, "moved", 1, 2)


def test_somebody_else_is_not_admitted_and_the_log_says_where_he_was(site: Site) -> None:
    if site.mechanism:
        other = site.admin(site.controller.address, **{"sasl.jaas.config": login(site.mechanism, ALICE, "wrong")})
        words = f"{site.mechanism}: wrong name or password"
    else:
        other = site.admin(site.controller.address, **{"ssl.keystore.location": ""})
        words = "it sent no certificate, and ssl.client.auth is required"
    with pytest.raises(AdminError):
        asyncio.run(other.list_topics(timeout_ms=3_000))
    if not site.mechanism:
        told = site.client_file("nobody.properties", without="ssl.keystore")
        at = ("--bootstrap-server", site.controller.address, "--command-config", str(told))
        java = tools.run_tool(tools.TOPICS, "--list", *at, timeout_s=50)
        assert "failed authentication due to" in java.stderr
    wait_until_logged(site.controller.process, words)
    (line,) = (line for line in site.log.splitlines() if words in line)
    assert json.loads(line)["address"] == "127.0.0.1"


def test_a_user_whom_the_controller_made_is_admitted_with_his_newest_password(site: Site) -> None:
    async def ask_controller() -> None:
        for password in ("first", "second"):
            await site.admin().set_scram_user("carol", password, mechanism="SCRAM-SHA-512")
            jaas = login("SCRAM-SHA-512", "carol", password)
            carol = site.admin(site.controller.address, **{"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas})
            await carol.list_topics()

    asyncio.run(ask_controller())


def test_the_quota_of_a_user_is_that_of_who_has_logged_in(site: Site) -> None:
    """The quota is set by Kafka's own tool. With a certificate, the user is its whole subject, encoded in the path."""
    of_user = ("--alter", "--entity-type", "users", "--entity-name", ALICE if site.mechanism else f"CN={CLIENT}")

    async def ask_controller() -> None:
        await site.admin(site.controller.address).create_topic("charged", 3, 1)
        with pytest.raises(Refused) as refused:
            await site.admin(site.controller.address).delete_topic("charged")
        assert refused.value.code is ErrorCode.throttling_quota_exceeded

    tool(site, tools.CONFIGS, *of_user, "--add-config", "controller_mutation_rate=0.001")
    try:
        asyncio.run(ask_controller())
    finally:
        tool(site, tools.CONFIGS, *of_user, "--delete-config", "controller_mutation_rate")
    asyncio.run(site.admin(site.controller.address).delete_topic("charged"))


@pytest.fixture(scope="module")
def authorizing(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    """Brokers and a controller that check the ACLs of authenticated users."""
    made = Site(servers_folder, zookeeper, "proofs", authorizes=True)
    with made.kafka, made.controller:
        made.kafka.start()
        yield made


def test_acls_are_about_the_name_that_somebody_has_logged_in_by(authorizing: Site) -> None:
    site = authorizing
    super_user = site.admin(site.controller.address, user=ADMIN)
    alice = site.admin(site.controller.address)

    async def ask_controller() -> None:
        with pytest.raises(Refused) as refused:
            await alice.create_topic("alices", 1, 2)
        assert refused.value.code is ErrorCode.topic_authorization_failed
        await super_user.create_topic("admins", replica_assignment="1:2")

    async def has_created() -> bool:
        try:
            await alice.create_topic("alices", 1, 2)
        except Refused:
            return False
        return True

    asyncio.run(ask_controller())
    site.allow_alice()
    wait_until(lambda: asyncio.run(has_created()), "alice may create topics")
    wait_until_in_sync(site, "admins", 1, 2)
    site.kafka.broker(2).stop()
    wait_until_in_sync(site, "admins", 1)
    site.kafka.broker(2).start()
    wait_until_in_sync(site, "admins", 1, 2)


def login(mechanism: str, user: str, password: str) -> str:
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return f'org.apache.kafka.common.security.{kind}LoginModule required username="{user}" password="{password}";'
