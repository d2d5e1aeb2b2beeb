"""`ssl.*`, by the names that clients of Kafka and brokers have for it alike."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr

from controller_core.security.property_types import OptionalFile, OptionalSecret, shown
from controller_core.security.tls_files import TlsFiles


def dotted(name: str) -> str:
    """The property that a field stands for."""
    return name.replace("_", ".")


class TlsProperties(BaseModel):
    """What a client shows and whom it trusts. Other properties are left alone."""

    model_config = ConfigDict(alias_generator=dotted, extra="ignore", frozen=True, hide_input_in_errors=True)

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
        """`folder`: where files are that have no other; `prefix`: how errors are to name the properties."""
        return TlsFiles(
            prefix=prefix,
            truststore_location=self.ssl_truststore_location and folder / self.ssl_truststore_location,
            truststore_certificates=shown(self.ssl_truststore_certificates),
            truststore_type=self.ssl_truststore_type,
            keystore_location=self.ssl_keystore_location and folder / self.ssl_keystore_location,
            keystore_certificate_chain=shown(self.ssl_keystore_certificate_chain),
            keystore_key=shown(self.ssl_keystore_key),
            keystore_type=self.ssl_keystore_type,
            key_password=shown(self.ssl_key_password),
            verifies_host_name=bool(self.ssl_endpoint_identification_algorithm),
        )
