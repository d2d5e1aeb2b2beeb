"""A recorder with a listener of controllers that needs TLS, a certificate and a login, and checks ACLs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs

from controller_core.journal.fold import fold
from controller_core.journal.reader import read
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.recording.sources import open_source
from controller_core.process.settings import load
from controller_core.recorder.directory import NOTHING_YET
from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.polled.looking import PolledLooker
from devcluster.clusters.certificates import Authority
from devcluster.clusters.kontroller import RecorderProcess
from devcluster.clusters.kraft import CONTROLLER, KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.filling.parts import Part
from tests.real.kraft.security import CLUSTER, LOCAL, add_rules, login, rule, tls

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

NODES: Final = "nodes secret"
PASSWORD: Final = "recorder secret"
LOGIN: Final = f"listener.name.{CONTROLLER.lower()}.plain.sasl.jaas.config"
SPOKEN: Final = {
    "controller.listener.names": CONTROLLER,
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{CONTROLLER}:SASL_SSL",
    "sasl.mechanism.controller.protocol": "PLAIN",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """An open broker, and a controller with authentication."""

    cluster: KRaftCluster
    authority: Authority
    stranger: Authority
    folder: Path

    def file(self, name: str, changed: Mapping[str, str] | None = None) -> Path:
        """Write the file of the recorder's own user: the part of a broker's file about the controllers."""
        own = tls(self.authority.issue("recorder"), self.authority)
        told = {**SPOKEN, **own, LOGIN: login("recorder", PASSWORD), **(changed or {})}
        return write_properties_file(self.folder / f"{name}.properties", told)

    def settings(self, file: Path) -> RecorderProcessSettings:
        given = {
            "bootstrap_server": self.cluster.bootstrap_servers,
            "properties": file,
            "journal_directory": self.folder / "unused",
        }
        return load(RecorderProcessSettings, given)


@pytest.fixture(scope="module")
def secured(servers_folder: RunFolder) -> Iterator[Secured]:
    """The nodes are super users, and so are the anonymous clients of the broker."""
    folder = servers_folder.data("recorded-secured-files")
    authority = Authority(folder)
    properties = {
        **SPOKEN,
        **tls(authority.issue("nodes", *LOCAL), authority),
        f"listener.name.{CONTROLLER.lower()}.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        LOGIN: f'{login("nodes", NODES)[:-1]} user_nodes="{NODES}" user_recorder="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:nodes",
    }
    with KRaftCluster(
        servers_folder, brokers=1, controllers=1, name="recorded-secured", properties=properties
    ) as cluster:
        stranger = Authority(folder / "stranger")
        yield Secured(cluster=cluster, authority=authority, stranger=stranger, folder=folder)


def test_a_brokers_own_file_says_how_controllers_are_reached(secured: Secured, servers_folder: RunFolder) -> None:
    with RecorderProcess(
        servers_folder,
        secured.cluster.bootstrap_servers,
        secured.folder / "journal",
        servers_option="--bootstrap-server",
        name="secured-recorder",
        options=["--properties", str(secured.cluster.broker(1).file)],
    ) as recorder:
        said = recorder.process.log_path.read_text()
        assert recorder.metric("kontroller_recorder_polls") == 0, said
        recorder.process.stop()
    assert NODES not in said
    folded = fold(read(secured.folder / "journal"))
    assert folded.findings == []
    assert folded.image is not None
    assert set(folded.image.brokers) == {1}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("password", "Invalid username or password"),
        ("authority", "certificate verify failed"),
        ("certificate", "ssl.keystore"),
        ("rights", "allow ClusterAction on the cluster"),
    ],
)
async def test_whom_controllers_do_not_admit_asks_brokers_and_says_why(
    secured: Secured, wrong: str, words: str
) -> None:
    changed = {
        "password": {LOGIN: login("recorder", "another secret")},
        "authority": {"ssl.truststore.location": str(secured.stranger.certificate)},
        "certificate": {"ssl.keystore.location": str(secured.stranger.issue("recorder").store())},
        "rights": {},
    }
    wanted = secured.settings(secured.file(wrong, changed[wrong]))
    with capture_logs() as said:
        async with open_source(wanted, NOTHING_YET) as source:
            assert isinstance(source.looker, PolledLooker)
            assert set((await source.looker.look()).state.brokers) == {1}
    (warning,) = [each for each in said if "polling brokers instead" in each["event"]]
    assert words in warning["error"]
    assert "secret" not in str(said)


async def test_a_user_of_its_own_who_has_the_right_follows_the_log(secured: Secured) -> None:
    admin = AdminClient({"bootstrap.servers": secured.cluster.bootstrap_servers})
    add_rules(admin, rule("User:recorder", CLUSTER, "kafka-cluster", "CLUSTER_ACTION"))
    wanted = secured.settings(secured.file("allowed"))
    async with open_source(wanted, NOTHING_YET) as source:
        assert isinstance(source.looker, MetadataLogLooker)
        assert set((await source.looker.look()).state.brokers) == {1}
