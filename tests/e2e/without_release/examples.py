"""The examples of secured clusters, filled in like by a user: with his own passwords and certificates.

Nobody else has these passwords and keys, so the tests can search for them everywhere.
"""

import secrets
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster.clusters.certificates import Authority
from tests.e2e.release import NAME, PROJECT, Release

NAMESPACE: Final = "secured"
EXAMPLES: Final = PROJECT / "examples" / "helm"
ADMIN, APP = "/etc/kafka-admin", "/etc/kafka-app"
"""Folders of the toolbox: the credentials of the cluster itself, and those of a client with ACLs."""
_DOMAINS: Final = {each: f"{NAME}-{each}.{NAMESPACE}.svc" for each in ("kafka", "controller", "zookeeper")}
_HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka": tuple(name for each in ("kafka", "controller") for name in (_DOMAINS[each], f"*.{_DOMAINS[each]}")),
    "zookeeper": (f"*.{_DOMAINS['zookeeper']}", f"*.{_DOMAINS['zookeeper']}.cluster.local"),
    "app": (),
}
"""The hosts of each certificate by common name, as in secured-certificates.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Files of examples/helm. `client`: the subject of ACLs; `folders`: folders of the toolbox, with the Secrets in
    each.
    """

    values: str
    connection: str
    client: str
    folders: Mapping[str, tuple[str, ...]]
    passwords: Mapping[str, str] = field(default_factory=dict)
    """The passwords that replace those of the file."""

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects in the file of connections, for this namespace."""
        text = (EXAMPLES / self.connection).read_text().replace(".kafka.svc", f".{NAMESPACE}.svc")
        for given, own in self.passwords.items():
            assert given in text
            text = text.replace(given, own)
        return list(yaml.safe_load_all(text))

    def zookeeper_connect(self) -> str:
        (said,) = (each["stringData"].get("server.properties") for each in self.objects() if "connect=" in str(each))
        (line,) = (each for each in str(said).splitlines() if each.startswith("zookeeper.connect="))
        return line.removeprefix("zookeeper.connect=")


CERTIFICATES: Final = Example(
    values="secured-values.yaml",
    connection="secured-connection.yaml",
    client="User:CN=app",
    folders={ADMIN: ("kafka-connection", "kafka-tls"), APP: ("kafka-connection", "app-tls")},
)
_PASSWORDS: Final = {f"change-me-{user}": secrets.token_urlsafe(24) for user in ("kafka", "app")}
LOGINS: Final = Example(
    values="secured-logins-values.yaml",
    connection="secured-logins-connection.yaml",
    client="User:app",
    folders={ADMIN: ("kafka-as-client", "app-tls"), APP: ("app-connection", "app-tls")},
    passwords=_PASSWORDS,
)


class Filled:
    """The Secrets that an example needs, in a release's namespace."""

    def __init__(self, example: Example, release: Release, folder: Path) -> None:
        self.keys: list[str] = []
        """A part of each issued private key."""
        self._release = release
        self._example = example
        self._authority = Authority(folder)
        for common_name in _HOSTS:
            self.renew(common_name)
        self._release.apply(*example.objects(), *self._make_client_secrets())

    def secrets(self) -> list[str]:
        """Return the secrets that nobody else may see."""
        token = self._release.get("secret", f"{NAME}-controller-journal-token")["data"]["token"]
        return [*self._example.passwords.values(), *self.keys, token, b64decode(token).decode()]

    def renew(self, common_name: str) -> str:
        """Put a new certificate into its Secret, as cert-manager would, and return it."""
        issued = self._authority.issue(common_name, *_HOSTS[common_name])
        self.keys.append(issued.key.read_text().splitlines()[5])
        files = {"tls-combined.pem": issued.store().read_text(), "ca.crt": self._authority.certificate.read_text()}
        self._release.apply(_secret(f"{common_name}-tls", files))
        return issued.certificate.read_text()

    def _make_client_secrets(self) -> list[dict[str, Any]]:
        """Return a Secret for Kafka's tools with the cluster's own login, which the example has for brokers alone."""
        return [
            _secret("kafka-as-client", {"client.properties": _use_kafka_login(each["stringData"]["client.properties"])})
            for each in self._example.objects()
            if each["metadata"]["name"] == "app-connection"
        ]


def _use_kafka_login(text: str) -> str:
    of_kafka, of_app = _PASSWORDS.values()
    return text.replace(of_app, of_kafka).replace('"app"', '"kafka"')


def _secret(name: str, files: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(files)}
