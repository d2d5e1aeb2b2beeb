"""Properties of a client, with the names of Kafka's own clients, from a mapping or a file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationError

from controller_core.client.errors import InvalidArgument
from controller_core.client.transport.request_client import Address, parse_addresses
from controller_core.security.properties_file import InvalidProperties, read_properties, trim_values
from controller_core.security.property_types import describe_errors
from controller_core.wire.connections.client_properties import ClientSecurity
from controller_core.wire.connections.security import Security, SecuritySource
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, parse_zk_security


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert errors of properties to errors of this library. Raises `InvalidArgument`."""
    try:
        yield
    except InvalidProperties as error:
        raise InvalidArgument(str(error)) from error


class ClientProperties(ClientSecurity):
    """The settings of a client. Other properties of Kafka are ignored, as Kafka's tools do."""

    bootstrap_servers: Annotated[tuple[Address, ...], BeforeValidator(lambda text: parse_addresses(str(text)))]
    client_id: str = Field(default="kontroller-admin", max_length=249)
    default_api_timeout_ms: int = Field(default=60_000, ge=1, le=86_400_000)
    socket_connection_setup_timeout_ms: int = Field(default=5_000, ge=1, le=86_400_000)
    zookeeper_connect: str | None = None
    """Not a property of Kafka's clients. Only ZooKeeper knows the topics that are marked for deletion."""
    zookeeper_security: ZkSecurity = NO_ZK_SECURITY
    """From the properties that begin with `zookeeper.`, as a broker has them."""

    @classmethod
    def parse(cls, properties: Mapping[str, object], folder: Path = Path()) -> Self:
        """Parse a mapping. `folder`: the base of relative paths of ZooKeeper's files.

        Raises `InvalidArgument`, which names the property."""
        given = trim_values(properties)
        of_zookeeper = {name: str(value) for name, value in given.items() if name.startswith("zookeeper.")}
        with convert_errors():
            security = parse_zk_security(of_zookeeper, folder)
        try:
            return cls.model_validate({**given, "zookeeper.security": security})
        except ValidationError as error:
            raise InvalidArgument(f"the client's properties: {describe_errors(error)}") from None

    @classmethod
    def read(cls, file: Path, given: Mapping[str, object]) -> Self:
        """Read a properties file. The given values have precedence. Raises `InvalidArgument`."""
        with convert_errors():
            return cls.parse({**read_properties(file), **given}, file.parent)

    def security(self) -> Security:
        """Return the security of connections. Raises `InvalidArgument` if a certificate or a login is unusable."""
        with convert_errors():
            return self.make_security()

    def security_source(self) -> SecuritySource | None:
        """Return a source of security for each new connection, because certificates may be renewed. Raises like
        `security`, at once."""
        self.security()
        return None if self.security_protocol == "PLAINTEXT" else self.make_security
