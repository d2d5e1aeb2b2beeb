"""The `ssl.*` properties, which have the same names for Kafka's clients and brokers."""

import re
from pathlib import Path
from textwrap import wrap
from typing import Final

from pydantic import BaseModel, ConfigDict, SecretStr

from controller_core.security.property_types import OptionalFile, OptionalSecret, reveal_secret
from controller_core.security.tls_files import TlsFiles

_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")


def make_property_name(name: str) -> str:
    """Return the property name of a field."""
    return name.replace("_", ".")


class TlsProperties(BaseModel):
    """The TLS properties of a client or a broker. Other properties are ignored."""

    model_config = ConfigDict(
        alias_generator=make_property_name, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    ssl_truststore_type: str = "JKS"
    ssl_truststore_location: OptionalFile = None
    ssl_truststore_certificates: OptionalSecret = None
    ssl_keystore_type: str = "JKS"
    ssl_keystore_location: OptionalFile = None
    ssl_keystore_certificate_chain: OptionalSecret = None
    ssl_keystore_key: OptionalSecret = None
    ssl_key_password: SecretStr | None = None
    ssl_endpoint_identification_algorithm: str = "https"

    def tls_files(self, folder: Path = Path(), prefix: str = "ssl") -> TlsFiles:
        """Return the certificate files. `folder` resolves relative paths; `prefix` is the property prefix in errors."""
        return TlsFiles(
            prefix=prefix,
            truststore_location=self.ssl_truststore_location and folder / self.ssl_truststore_location,
            truststore_certificates=_read_pem(self.ssl_truststore_certificates),
            truststore_type=self.ssl_truststore_type,
            keystore_location=self.ssl_keystore_location and folder / self.ssl_keystore_location,
            keystore_certificate_chain=_read_pem(self.ssl_keystore_certificate_chain),
            keystore_key=_read_pem(self.ssl_keystore_key),
            keystore_type=self.ssl_keystore_type,
            key_password=reveal_secret(self.ssl_key_password),
            verifies_host_name=bool(self.ssl_endpoint_identification_algorithm),
        )


def _read_pem(given: SecretStr | None) -> str | None:
    """Return PEM in lines. A property often has blanks in place of line ends, which Java accepts and OpenSSL does not."""
    return _PEM.sub(_write_lines, given.get_secret_value()) if given is not None else None


def _write_lines(block: re.Match[str]) -> str:
    label, content = block.groups()
    return "\n".join(
        ("", f"-----BEGIN {label}-----", *wrap("".join(content.split()), 64), f"-----END {label}-----", "")
    )
