"""Kafka brokers whose listeners need certificates and logins, and the settings of their clients.

Each cluster has its own authority, which has signed the certificates of brokers, the controller and a client. Users
exist in all three mechanisms. Their SCRAM credentials are in ZooKeeper before the first broker starts, because brokers
use them to log in at each other.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from controller_core.model.scram import SCRAM_MECHANISMS, SaltedPassword, make_credential
from controller_core.wire.connections.security import Login
from devcluster.building.java import KAFKA_VERSION
from devcluster.clients.identity import Identity, Shown
from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper

ADMIN: Final = "admin"
"""The user of brokers and controllers; a super user."""
ALICE: Final = "alice"
"""The user of clients, whose rights are in ACLs."""
BOB: Final = "bob"
"""A user without rights."""
PASSWORDS: Final = {ADMIN: "admin secret", ALICE: "alice secret", BOB: "bob secret"}
BROKER, CONTROLLER, CLIENT = "broker", "controller", "client"
"""The common names of the certificates; the first two are super users."""
_OPENS_KEYS: Final = "key secret"
_LOCAL: Final = ("localhost", "IP:127.0.0.1")
_MECHANISMS: Final = ("PLAIN", *(mechanism.name for mechanism in SCRAM_MECHANISMS.values()))
_ITERATIONS: Final = 4096


class SecuredKafka(KafkaCluster):
    """A `KafkaCluster` with listeners of any protocol. `mechanism`: with which brokers log in at each other."""

    def __init__(
        self,
        folder: RunFolder,
        zookeeper: ZooKeeper,
        *,
        listeners: ListenerNames,
        name: str,
        mechanism: str = "SCRAM-SHA-512",
        client_auth: str = "required",
        authorizes: bool = False,
        brokers: int = 2,
        properties: Mapping[str, object] | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        """Configure the cluster. `client_auth`: the `ssl.client.auth` of SSL listeners.

        `authorizes`: turn ACLs on; at first only super users have rights.
        """
        self.listeners = listeners
        self.files = folder.data(f"{name}-files")
        self.authority = Authority(self.files)
        self.certificates = {each: self.authority.issue(each, *_LOCAL) for each in (BROKER, CONTROLLER, CLIENT)}
        self._mechanism = mechanism
        super().__init__(
            folder,
            zookeeper,
            brokers=brokers,
            chroot=f"/{name}",
            name=name,
            listeners=listeners,
            properties={
                **self.broker_properties(),
                **({} if version == KAFKA_VERSION else self._make_locked_properties(self.certificates[BROKER])),
                "ssl.client.auth": client_auth,
                "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
                **(self.authorizer if authorizes else {}),
                **(properties or {}),
            },
            version=version,
        )

    @property
    def authorizer(self) -> dict[str, str]:
        """The properties of nodes that check ACLs."""
        return {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:CN={BROKER};User:CN={CONTROLLER}",
        }

    def start(self) -> None:
        """Start like `KafkaCluster.start`, after writing the users, which the brokers need."""
        with self._zookeeper.client() as client:
            for user, password in PASSWORDS.items():
                path = f"{self._chroot}/config/users/{user}"
                client.ensure_path(path)
                client.set(path, json.dumps({"version": 1, "config": dict(_credentials(password))}).encode())
        super().start()

    def broker_properties(
        self, certificate: CertificateFiles | None = None, *, user: str = ADMIN, password: str | None = None
    ) -> dict[str, str]:
        """Return the security properties of brokers; with another certificate and login, also those of the controller."""
        return {
            "inter.broker.listener.name": self.listeners.inter_broker,
            "listener.security.protocol.map": ",".join(
                f"{name}:{self.listeners.protocol(name)}" for name in self.listeners.names
            ),
            "sasl.mechanism.inter.broker.protocol": self._mechanism,
            **self._tls(certificate or self.certificates[BROKER]),
            **dict(self._logins(user, PASSWORDS[user] if password is None else password)),
        }

    def client_properties(
        self, listener: str, *, user: str = ALICE, mechanism: str = "SCRAM-SHA-512", password: str | None = None
    ) -> dict[str, str]:
        """Return the security properties of a client of a listener, in the names of Kafka's clients."""
        return {
            "security.protocol": self.listeners.protocol(listener),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": _login(mechanism, user, PASSWORDS[user] if password is None else password),
            **self._tls(self.certificates[CLIENT]),
        }

    def identity(self, listener: str, *, user: str = ALICE, mechanism: str = "") -> Identity:
        """Return the identity of a client of a listener; `mechanism`: with which the user logs in, empty for no login."""
        protocol = self.listeners.protocol(listener)
        has_tls, own = "SSL" in protocol, self.certificates[CLIENT]
        login = Login(mechanism=mechanism, username=user, password=PASSWORDS[user]) if mechanism else None
        return Identity(
            protocol=protocol,
            authority=self.authority.certificate if has_tls else None,
            certificate=Shown(certificate=own.certificate, key=own.key, both=own.store()) if has_tls else None,
            login=login,
        )

    def write_properties(self, name: str = "controller.properties", **changed: str) -> Path:
        """Write the file of our controller, with some properties changed: in their names `_` stands for `.`."""
        told = {**self.broker_properties(self.certificates[CONTROLLER]), "zookeeper.connect": self.zookeeper_connect}
        return write_properties_file(
            self.files / name, {**told, **{key.replace("_", "."): value for key, value in changed.items()}}
        )

    def _tls(self, certificate: CertificateFiles) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate.store()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }

    def _make_locked_properties(self, certificate: CertificateFiles) -> dict[str, str]:
        """Return the properties of a keystore with a password, because Kafka 2.8 reads no PEM key without one."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(certificate.write_locked_store(_OPENS_KEYS)),
            "ssl.keystore.password": _OPENS_KEYS,
            "ssl.key.password": _OPENS_KEYS,
        }

    def _logins(self, user: str, password: str) -> Iterator[tuple[str, str]]:
        """Return the JAAS settings of each SASL listener and mechanism: the user to log in with, and for PLAIN the
        known users.
        """
        known = " ".join(f'user_{each}="{secret}"' for each, secret in PASSWORDS.items())
        for name in self.listeners.names:
            if self.listeners.protocol(name).startswith("SASL"):
                for mechanism in _MECHANISMS:
                    further = known if mechanism == "PLAIN" else ""
                    key = f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
                    yield key, _login(mechanism, user, password, further)


def write_properties_file(file: Path, properties: Mapping[str, str]) -> Path:
    """Write a file of properties; an old one is replaced atomically."""
    new = file.with_suffix(".new")
    new.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return new.replace(file)


def _login(mechanism: str, user: str, password: str, further: str = "") -> str:
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    return f'{module} required username="{user}" password="{password}" {further};'


def _credentials(password: str) -> Iterator[tuple[str, str]]:
    for mechanism in SCRAM_MECHANISMS.values():
        salt = mechanism.name.encode()
        salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, _ITERATIONS)
        known = SaltedPassword(salt=salt, salted=salted, iterations=_ITERATIONS)
        yield mechanism.name, make_credential(mechanism, known)
