"""A ZooKeeper with TLS, client certificates and users, an open port for observers, and the settings of its clients."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from devcluster.clusters.certificates import CertificateFiles, make_certificate
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import release_port, reserve_port

USER: Final = "kafka"
PASSWORD: Final = "kafka secret"  # noqa: S105 - of servers on this machine, for as long as a test runs
_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_PACKAGE: Final = "org.apache.zookeeper"


class SecuredZooKeeper(ZooKeeper):
    """A ZooKeeper with an open port, and a secure port that needs a certificate; both know one user.

    All servers of an ensemble share the certificate of the first one: the others are `like` it.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        name: str = "secured-zookeeper",
        heap_mb: int = 512,
        further: Mapping[str, object] = MappingProxyType({}),
        like: "SecuredZooKeeper | None" = None,
    ) -> None:
        self.secure_port = reserve_port()
        self.files: Path = like.files if like else folder.data(f"{name}-files")
        own = like.certificate if like else make_certificate(self.files, "localhost", "IP:127.0.0.1")
        self.certificate: CertificateFiles = own
        self.store = self.certificate.store()
        logins = self.files / "server.jaas"
        logins.write_text(f'Server {{ {_MODULE} required user_{USER}="{PASSWORD}" user_other="other secret"; }};\n')
        super().__init__(
            folder,
            name=name,
            heap_mb=heap_mb,
            further={
                **further,
                "ssl.quorum.keyStore.location": self.store,
                "ssl.quorum.trustStore.location": self.certificate.certificate,
                "ssl.quorum.trustStore.type": "PEM",
                "secureClientPort": self.secure_port,
                "secureClientPortAddress": "127.0.0.1",
                "serverCnxnFactory": f"{_PACKAGE}.server.NettyServerCnxnFactory",
                "ssl.protocol": "TLSv1.3",
                "ssl.enabledProtocols": "TLSv1.3,TLSv1.2",
                "ssl.ciphersuites": "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "ssl.keyStore.location": self.store,
                "ssl.trustStore.location": self.certificate.certificate,
                "ssl.trustStore.type": "PEM",
                "authProvider.sasl": f"{_PACKAGE}.server.auth.SASLAuthenticationProvider",
            },
            env={"JDK_JAVA_OPTIONS": f"-Djava.security.auth.login.config={logins}"},
        )

    @property
    def secure_connect(self) -> str:
        """The connect string of the secure port, without a chroot."""
        return f"127.0.0.1:{self.secure_port}"

    def properties(self, *, user: str = USER, password: str = PASSWORD) -> dict[str, str]:
        """Return the properties of a client in Kafka's names. Brokers use them too, except for the login."""
        return {
            **self.broker_properties(),
            "zookeeper.sasl.jaas.config": f'{_MODULE} required username="{user}" password="{password}";',
        }

    def broker_properties(self) -> dict[str, str]:
        """Return the properties of a broker, whose login is in `broker_env`."""
        return {
            "zookeeper.set.acl": "true",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": f"{_PACKAGE}.ClientCnxnSocketNetty",
            "zookeeper.ssl.keystore.location": str(self.store),
            "zookeeper.ssl.keystore.type": "PEM",
            "zookeeper.ssl.truststore.location": str(self.certificate.certificate),
            "zookeeper.ssl.truststore.type": "PEM",
        }

    @property
    def broker_env(self) -> Mapping[str, str]:
        """The environment in which a broker finds its login."""
        logins = self.files / "client.jaas"
        logins.write_text(f'Client {{ {_MODULE} required username="{USER}" password="{PASSWORD}"; }};\n')
        return {"JDK_JAVA_OPTIONS": f"-Djava.security.auth.login.config={logins}"}

    def write_properties(self, name: str = "client.properties", **changed: str) -> Path:
        """Write a file of `properties`, with some of them changed: in their names `_` stands for `.`."""
        properties = {**self.properties(), **{key.replace("_", "."): value for key, value in changed.items()}}
        file = self.files / name
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return file

    def close(self) -> None:
        super().close()
        release_port(self.secure_port)
