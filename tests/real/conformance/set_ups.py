"""How the clusters of the suite are set up: all tests hold for each of them, whoever is the controller.

Brokers, the controller and clients speak one protocol at all listeners. Where ACLs are asked, clients have their rights by
ACLs, and brokers and the controller are super users; where nobody is asked who he is, all of them are the same nobody,
who has them by ACLs.

Brokers of older releases have our controller, each without anything of it and with all of it. What they lack, or do
otherwise, each under its own controller too, is named where a test is left out for them: `since`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from controller_core.zk import paths
from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.clients.identity import Identity
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ALICE, CLIENT, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from tests.sampling import ONE_EACH

KAFKA, OURS = "kafka", "kontroller"
_SHOWN_AT_LOGIN: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
_RESOURCES: Final = ("Cluster/kafka-cluster", "Topic/*", "Group/*", "TransactionalId/*", "DelegationToken/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What all listeners of a cluster want."""

    protocol: str
    mechanism: str = ""
    """By which everybody logs in; none without SASL."""
    client_auth: str = "none"
    """As `ssl.client.auth`."""
    asks_acls: bool = False
    release: str = KAFKA_VERSION
    """Of the brokers."""

    @property
    def listeners(self) -> ListenerNames:
        """Clients have one of their own."""
        names = ("INTERNAL", "CLIENT")
        return ListenerNames(inter_broker=names[0], clients=names[1], protocols=dict.fromkeys(names, self.protocol))

    @property
    def principal(self) -> str:
        """Whom clients are known as."""
        if self.mechanism:
            return f"User:{ALICE}"
        return f"User:CN={CLIENT}" if self.client_auth == "required" else "User:ANONYMOUS"

    def kafka(
        self, folder: RunFolder, zookeeper: ZooKeeper, *, name: str, properties: Mapping[str, object]
    ) -> SecuredKafka:
        """A cluster without brokers yet."""
        return SecuredKafka(
            folder,
            zookeeper,
            brokers=0,
            properties=properties,
            name=name,
            listeners=self.listeners,
            mechanism=self.mechanism or "SCRAM-SHA-512",
            client_auth=self.client_auth,
            authorizes=self.asks_acls,
            version=self.release,
        )

    def identity(self, kafka: SecuredKafka) -> Identity:
        """Of the clients."""
        return kafka.identity(self.listeners.clients, mechanism=self.mechanism)

    def controllers_properties(self, kafka: SecuredKafka) -> str:
        """The file of our controller."""
        authorizer = {name.replace(".", "_"): value for name, value in kafka.authorizer.items()}
        return str(
            kafka.write_properties(
                sasl_enabled_mechanisms=_SHOWN_AT_LOGIN,
                ssl_client_auth=self.client_auth,
                **(authorizer if self.asks_acls else {}),
            )
        )

    def allow(self, kafka: SecuredKafka) -> None:
        """Gives the clients all rights, before there are brokers."""
        if self.asks_acls:
            everything = {"principal": self.principal, "permissionType": "Allow", "operation": "All", "host": "*"}
            data = json.dumps({"version": 1, "acls": [everything]}).encode()
            with connected_client(kafka.zookeeper_connect) as client:
                for resource in _RESOURCES:
                    client.create(f"{paths.ACLS}/{resource}", data, makepath=True)


SECURED: Final = {
    "PLAINTEXT-acls": SetUp(protocol="PLAINTEXT", asks_acls=True),
    "SSL": SetUp(protocol="SSL"),
    "SSL-acls": SetUp(protocol="SSL", asks_acls=True),
    "certificates": SetUp(protocol="SSL", client_auth="required"),
    "certificates-acls": SetUp(protocol="SSL", client_auth="required", asks_acls=True),
    "SASL_PLAINTEXT": SetUp(protocol="SASL_PLAINTEXT", mechanism="PLAIN"),
    "SASL_PLAINTEXT-acls": SetUp(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", asks_acls=True),
    "SASL_SSL": SetUp(protocol="SASL_SSL", mechanism="SCRAM-SHA-512"),
    "SASL_SSL-acls": SetUp(protocol="SASL_SSL", mechanism="PLAIN", asks_acls=True),
}
"""By their names, beside PLAINTEXT without ACLs."""
SECURED_OURS: Final = tuple(f"{OURS}-{name}" for name in SECURED)
SECURED_KAFKAS: Final = tuple(f"{KAFKA}-{name}" for name, set_up in SECURED.items() if set_up.asks_acls)
"""Each protocol once: what ACLs are asked about is more than what is done without."""

SECURED_OLDER: Final = {
    f"SASL_SSL-acls-{release}": SetUp(protocol="SASL_SSL", mechanism="SCRAM-SHA-512", asks_acls=True, release=release)
    for release in OLDER_VERSIONS
}
"""As `SECURED`, with brokers of older releases."""
SET_UPS: Final = SECURED | SECURED_OLDER
OLDER_OURS: Final = tuple(f"{OURS}-{name}" for name in (*OLDER_VERSIONS, *SECURED_OLDER))
"""With brokers of an older release."""

ours_only: Final = pytest.mark.parametrize(
    "started_cluster", [OURS, *SECURED_OURS, *OLDER_OURS], indirect=True, scope="session"
)
"""The mark of tests that hold for our controller alone: where it does better than Kafka's, or otherwise on purpose."""


def release_of(name: str) -> str:
    """Of the brokers of the set-up that has this name, without that of the controller."""
    if name in SET_UPS:
        return SET_UPS[name].release
    return name if name in OLDER_VERSIONS else KAFKA_VERSION


def since(release: str, why: str) -> pytest.MarkDecorator:
    """The mark of tests that hold for brokers from a release on, such as `3.4`; `why`: what those before do not have."""
    return pytest.mark.since(release, why)


def deal_out(config: pytest.Config, items: list[pytest.Item], fixture: str, case: Callable[[pytest.Item], str]) -> None:
    """Has each commit run one case on one of the secured clusters, and one with brokers of the oldest release.

    `fixture`: the one that starts the cluster of a parameter; `case`: in which case of those on its cluster a test is."""
    is_sample = config.getoption("--sample")
    between = {item for item in items if is_sample and release_of(_set_up_of(item, fixture)) in OLDER_VERSIONS[1:]}
    config.hook.pytest_deselected(items=list(between))
    items[:] = [item for item in items if item not in between]
    for item in items:
        set_up = _set_up_of(item, fixture)
        if (release := release_of(set_up)) in OLDER_VERSIONS:
            matrix = "conformance with brokers of the oldest release"
            _leave_out_what_is_newer(item, release)
        elif set_up in SECURED:
            matrix = "conformance of secured clusters"
        else:
            continue
        item.add_marker(pytest.mark.matrix(matrix, f"{_parameter(item, fixture)} {case(item)}", parts=ONE_EACH))


def _set_up_of(item: pytest.Item, fixture: str) -> str:
    """Without the name of the controller."""
    return _parameter(item, fixture).removeprefix(f"{OURS}-").removeprefix(f"{KAFKA}-")


def _parameter(item: pytest.Item, fixture: str) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get(fixture, "")) if callspec is not None else ""


def _leave_out_what_is_newer(item: pytest.Item, release: str) -> None:
    """Has a test that is marked `since` a newer release say so in place of running."""
    for marker in item.iter_markers("since"):
        first, why = marker.args
        if _numbers(release) < _numbers(first):
            item.add_marker(pytest.mark.skip(reason=f"brokers of Kafka {release}: {why} (since {first})"))


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]
