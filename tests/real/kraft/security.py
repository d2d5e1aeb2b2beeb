"""Credentials and ACLs of clients and nodes in a secured cluster without ZooKeeper."""

from typing import Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports more than it lists
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from devcluster.clusters.certificates import Authority, CertificateFiles

MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LOCAL: Final = ("localhost", "IP:127.0.0.1")
CLUSTER: Final = ResourceType.BROKER
TOPIC: Final = ResourceType.TOPIC


def tls(own: CertificateFiles, trusted: Authority) -> dict[str, str]:
    """Return the properties of one's own certificate, and of the authority of others."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.store()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted.certificate),
    }


def login(user: str, password: str) -> str:
    """Return the value of `sasl.jaas.config` for PLAIN."""
    return f'{MODULE} username="{user}" password="{password}";'


def rule(principal: str, kind: ResourceType, name: str, operation: str, *, allows: bool = True) -> AclBinding:
    """Return an ACL for all hosts."""
    permission = AclPermissionType.ALLOW if allows else AclPermissionType.DENY
    return AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", AclOperation[operation], permission)


def add_rules(admin: AdminClient, *rules: AclBinding) -> None:
    """Add ACLs, and return when the cluster has accepted them."""
    for done in admin.create_acls(list(rules)).values():
        done.result(30)
