"""Three ZooKeeper servers, in plain text or with TLS, certificates and logins, and the settings of their clients."""

from collections.abc import Mapping
from dataclasses import dataclass

from devcluster.clusters.ensemble import SecuredEnsemble, ZooKeeperEnsemble
from devcluster.clusters.run_folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """An ensemble, and its settings for brokers and controllers."""

    ensemble: ZooKeeperEnsemble
    name: str
    connect: str
    ports: list[int]
    broker_properties: Mapping[str, object]
    broker_env: Mapping[str, str]
    settings: Mapping[str, object]
    """The settings of controllers."""


def start_plain(folder: RunFolder) -> Servers:
    ensemble = ZooKeeperEnsemble(folder, name="quorum", sync_ticks=6)
    return Servers(
        ensemble=ensemble,
        name="quorum",
        connect=ensemble.connect,
        ports=[server.port for server in ensemble.servers],
        broker_properties={},
        broker_env={},
        settings={},
    )


def start_with_tls(folder: RunFolder) -> Servers:
    """Start servers with TLS. Observers have no certificate, so no ACLs are set."""
    ensemble = SecuredEnsemble(folder, name="secured-quorum", sync_ticks=6)
    first, open_to_all = ensemble.first, {"zookeeper.set.acl": "false"}
    return Servers(
        ensemble=ensemble,
        name="secured-quorum",
        connect=ensemble.secure_connect,
        ports=[server.secure_port for server in ensemble.servers],
        broker_properties={
            **first.broker_properties(),
            **open_to_all,
            "zookeeper.connect": f"{ensemble.secure_connect}/secured-quorum",
        },
        broker_env=first.broker_env,
        settings={"properties": str(first.write_properties(zookeeper_set_acl="false"))},
    )
