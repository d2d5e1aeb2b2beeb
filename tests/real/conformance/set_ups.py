"""How the clusters of the suite are secured: all tests hold for each of them, whoever is the controller.

Brokers, the controller and clients speak one protocol at all listeners. Where ACLs are asked, clients have their rights by
ACLs, and brokers and the controller are super users; where nobody is asked who he is, all of them are the same nobody,
who has them by ACLs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pytest

from controller_core.zk import paths
from devcluster.clients.identity import Identity
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ALICE, CLIENT, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, connected_client

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

ours_only: Final = pytest.mark.parametrize("started_cluster", [OURS, *SECURED_OURS], indirect=True, scope="session")
"""The mark of tests that hold for our controller alone: where it does better than Kafka's, or otherwise on purpose."""
