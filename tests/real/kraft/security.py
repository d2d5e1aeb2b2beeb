"""How clients and nodes of a secured cluster without ZooKeeper show who they are, and what they may do."""

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
    """The properties of a certificate of one's own, and of who signed those of others."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.store()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted.certificate),
    }


def login(user: str, password: str) -> str:
    """The value of `sasl.jaas.config` for PLAIN."""
    return f'{MODULE} username="{user}" password="{password}";'


def rule(principal: str, kind: ResourceType, name: str, operation: str, *, allows: bool = True) -> AclBinding:
    """An ACL for all hosts."""
    permission = AclPermissionType.ALLOW if allows else AclPermissionType.DENY
    return AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", AclOperation[operation], permission)


def add_rules(admin: AdminClient, *rules: AclBinding) -> None:
    """Returns when the cluster has taken the ACLs."""
    for done in admin.create_acls(list(rules)).values():
        done.result(30)
