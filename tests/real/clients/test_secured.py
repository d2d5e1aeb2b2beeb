"""The admin client at a broker with TLS and a login: it works with either, and wrong credentials are reported."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import AdminError, NotAdmittedError, Unreachable
from devcluster.clients import tools
from devcluster.clusters.certificates import make_certificate
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import release_port, reserve_port

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A broker with an open listener, and one with TLS and SASL."""

    plaintext: str
    secure: str
    trusted: Path
    other: Path
    """A certificate that the broker does not have."""

    def client(self, **changed: str) -> AdminClient:
        """Return a client that is admitted, except for the changed properties."""
        properties = {
            "bootstrap.servers": self.secure,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_LOGIN} username="alice" password="secret";',
            "default.api.timeout.ms": "60000",
        }
        return AdminClient({**properties, **{name.replace("_", "."): value for name, value in changed.items()}})


@pytest.fixture(scope="module")
def secured(
    servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    files = make_certificate(tmp_path_factory.mktemp("certificate"), "IP:127.0.0.1")
    store = files.store()
    other = make_certificate(tmp_path_factory.mktemp("other"), "IP:127.0.0.1")
    open_port, secure_port = reserve_port(), reserve_port()
    login = "listener.name.secure"
    properties: dict[str, object] = {
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "default.replication.factor": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SECURE://127.0.0.1:{secure_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
        f"{login}.ssl.keystore.type": "PEM",
        f"{login}.ssl.keystore.location": store,
        f"{login}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{login}.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_alice="secret";',
        f"{login}.scram-sha-256.sasl.jaas.config": f"{SCRAM_LOGIN};",
        f"{login}.scram-sha-512.sasl.jaas.config": f"{SCRAM_LOGIN};",
    }
    with KafkaCluster(servers_folder, zookeeper, brokers=0, chroot="/secured") as kafka:
        broker = kafka.add_broker(1, properties=properties)
        broker.port = open_port
        kafka.start()
        given = "SCRAM-SHA-256=[password=pencil],SCRAM-SHA-512=[password=pencil]"
        plaintext = f"127.0.0.1:{open_port}"
        added = tools.run_tool(
            tools.CONFIGS, "--bootstrap-server", plaintext, "--alter", "--add-config", given,
            "--entity-type", "users", "--entity-name", "bob", timeout_s=60,
        )  # fmt: skip
        assert added.returncode == 0, added.stdout + added.stderr
        yield Secured(
            plaintext=plaintext,
            secure=f"127.0.0.1:{secure_port}",
            trusted=files.certificate,
            other=other.certificate,
        )
    release_port(open_port)
    release_port(secure_port)


async def test_a_password_is_enough_over_tls(secured: Secured) -> None:
    admin = secured.client()
    await admin.create_topic("secured", 1, 1)
    assert (await admin.describe_topic("secured")).replication_factor == 1
    (broker,) = (await admin.describe_cluster()).brokers.values()
    assert f"{broker.endpoints[0].host}:{broker.endpoints[0].port}" == secured.secure


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_password_that_is_never_sent_is_enough_too(secured: Secured, mechanism: str) -> None:
    login = f'{SCRAM_LOGIN} username="bob" password="pencil";'
    await secured.client(sasl_mechanism=mechanism, sasl_jaas_config=login).list_topics()


async def test_a_user_whom_the_client_made_is_admitted(secured: Secured) -> None:
    made = AdminClient({"bootstrap.servers": secured.plaintext})
    await made.set_scram_user("carol", "pass word", mechanism="SCRAM-SHA-512")
    login = f'{SCRAM_LOGIN} username="carol" password="pass word";'
    admitted = secured.client(sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=login)
    # Brokers learn of users by a watch.
    deadline_s = asyncio.get_running_loop().time() + 30
    while not await is_admitted(admitted):
        assert asyncio.get_running_loop().time() < deadline_s
        await asyncio.sleep(0.1)
    assert "carol" in await admitted.list_scram_users()


async def is_admitted(admin: AdminClient) -> bool:
    try:
        await admin.describe_cluster()
    except NotAdmittedError:
        return False
    return True


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("who", ["alice", "bob", "nobody"])
async def test_another_password_is_not(secured: Secured, mechanism: str, who: str) -> None:
    login = f'{SCRAM_LOGIN} username="{who}" password="wrong";'
    with pytest.raises(NotAdmittedError, match=who) as refused:
        await secured.client(sasl_mechanism=mechanism, sasl_jaas_config=login).list_topics()
    assert "wrong" not in str(refused.value)


async def test_a_server_that_is_not_trusted_is_told_no_password(secured: Secured) -> None:
    with pytest.raises(NotAdmittedError, match="certificate verify failed"):
        await secured.client(ssl_truststore_location=str(secured.other)).list_topics()
    with pytest.raises(NotAdmittedError, match="localhost"):
        await secured.client(bootstrap_servers=secured.secure.replace("127.0.0.1", "localhost")).list_topics()


async def test_a_protocol_that_is_not_the_listener_s_is_said(secured: Secured) -> None:
    with pytest.raises(AdminError, match=r"TLS|closed the connection|cannot be reached"):
        await secured.client(bootstrap_servers=secured.plaintext).list_topics(timeout_ms=3_000)
    with pytest.raises(AdminError, match=r"did not answer|security\.protocol"):
        await secured.client(security_protocol="PLAINTEXT").list_topics(timeout_ms=3_000)


async def test_who_gives_no_login_is_not_served(secured: Secured) -> None:
    with pytest.raises(Unreachable, match="did not answer"):
        await secured.client(security_protocol="SSL").list_topics(timeout_ms=3_000)


@pytest.mark.parametrize(
    "command", [("ready", "--broker-id", "1"), ("check", "cluster")], ids=["ready", "check cluster"]
)
def test_what_a_pod_runs_is_admitted_by_a_file_of_properties(
    secured: Secured, command: tuple[str, ...], tmp_path: Path
) -> None:
    config = write_properties(tmp_path, secured, password="secret")
    done = run_command(*command, "--bootstrap-server", secured.secure, "--command-config", str(config))
    assert done.returncode == 0, done.stdout + done.stderr
    refused = run_command(*command, "--bootstrap-server", secured.secure, "--command-config", str(tmp_path / "absent"))
    assert (refused.returncode, "absent" in refused.stderr) == (2, True)


def test_what_a_pod_runs_is_admitted_by_the_file_that_brokers_have(secured: Secured, tmp_path: Path) -> None:
    def ready(*files: str) -> CompletedProcess[str]:
        return run_command("ready", "--broker-id", "1", "--bootstrap-server", secured.secure, *files)

    file = tmp_path / "server.properties"
    file.write_text(
        "inter.broker.listener.name=SECURE\nlistener.security.protocol.map=SECURE:SASL_SSL\n"
        "sasl.mechanism.inter.broker.protocol=PLAIN\n"
        f'listener.name.secure.plain.sasl.jaas.config={PLAIN_LOGIN} username="alice" password="secret";\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=ca.crt\n"
    )
    refused = ready("--properties", str(file))
    assert (refused.returncode, "ca.crt" in refused.stderr) == (2, True)
    (tmp_path / "ca.crt").write_text(secured.trusted.read_text())
    done = ready("--properties", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    both = ready("--properties", str(file), "--command-config", str(file))
    assert (both.returncode, "give one" in both.stderr) == (2, True)


def test_a_drain_that_is_not_admitted_says_so_at_once(secured: Secured, tmp_path: Path) -> None:
    asked = (
        "drain",
        "--broker-id",
        "1",
        "--bootstrap-server",
        secured.secure,
        "--timeout-ms",
        "50000",
        "--command-config",
    )
    done = run_command(*asked, str(write_properties(tmp_path, secured, password="wrong")))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "correct the file of --command-config or --properties" in done.stderr
    assert "draining broker 1, for 50 s" in done.stdout
    admitted = run_command(*asked, str(write_properties(tmp_path, secured, password="secret")), timeout_s=90)
    assert "not admit" not in admitted.stdout + admitted.stderr


def write_properties(folder: Path, secured: Secured, *, password: str) -> Path:
    """Write a file of properties for alice, with the right password or another one."""
    file = folder / f"{password}.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.trusted}\n"
        f'sasl.jaas.config={PLAIN_LOGIN} username="alice" password="{password}";\n'
    )
    return file
