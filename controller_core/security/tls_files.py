"""The certificates and keys of an encrypted connection, as PEM in files or in property values.

The files are read when a context is made, so the next context uses renewed certificates.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from controller_core.security.properties_file import InvalidProperties
from controller_core.security.trust import make_client_context, trust_each_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The key store and trust store of a TLS connection. Each is a file, literal certificates, or absent."""

    prefix: str = "ssl"
    """The prefix of the properties that this was read from, for errors."""
    truststore_location: Path | None = None
    truststore_certificates: str | None = None
    truststore_type: str = "PEM"
    keystore_location: Path | None = None
    keystore_certificate_chain: str | None = None
    keystore_key: str | None = field(default=None, repr=False)
    keystore_type: str = "PEM"
    key_password: str | None = field(default=None, repr=False)
    verifies_host_name: bool = True

    def make_client_context(self) -> ssl.SSLContext:
        """Return a client's TLS context. Raises `InvalidProperties` if a certificate or a key cannot be used."""
        try:
            context = self._make_trusting_context()
            self._present(context)
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error
        context.check_hostname = self.verifies_host_name
        return context

    def make_server_context(self, client_certificate: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
        """Return a server's TLS context. Raises `InvalidProperties`, also if there is no certificate to show.

        `client_certificate` says whether clients may or must show a certificate.
        """
        if self.keystore_location is None and self.keystore_certificate_chain is None:
            raise InvalidProperties(
                f"there is no certificate: set {self.prefix}.keystore.location and {self.prefix}.keystore.type=PEM"
            )
        if client_certificate is not ssl.CERT_NONE and not (self.truststore_location or self.truststore_certificates):
            raise InvalidProperties(
                f"client certificates are requested but no authority is trusted: set {self.prefix}.truststore.location"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            self._present(context)
            if self.truststore_certificates is not None:
                context.load_verify_locations(cadata=self.truststore_certificates)
            elif self.truststore_location is not None:
                self._require_pem("truststore", self.truststore_type)
                context.load_verify_locations(cafile=self.truststore_location)
            trust_each_certificate(context)
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error
        context.verify_mode = client_certificate
        context.options |= ssl.OP_NO_RENEGOTIATION
        return context

    def files(self) -> Iterator[Path]:
        """Yield the files that a context is made from."""
        yield from filter(None, (self.truststore_location, self.keystore_location))

    def _unusable(self, error: Exception) -> InvalidProperties:
        """Return the error for the user. It names missing files, because Python's own message does not."""
        named = (self.truststore_location, self.keystore_location)
        absent = [str(each) for each in named if each is not None and not each.exists()]
        is_told = isinstance(error, FileNotFoundError) and absent
        why = f"there is no file {' and no '.join(absent)}" if is_told else error
        return InvalidProperties(f"the certificates of {self.prefix}.* cannot be used: {why}")

    def _make_trusting_context(self) -> ssl.SSLContext:
        """Return a context that trusts the configured authorities, or those of the system if none are configured."""
        if self.truststore_certificates is not None:
            return make_client_context(certificates=self.truststore_certificates)
        if self.truststore_location is not None:
            self._require_pem("truststore", self.truststore_type)
        return make_client_context(self.truststore_location)

    def _present(self, context: ssl.SSLContext) -> None:
        chain, key, password = self.keystore_certificate_chain, self.keystore_key, self.key_password or ""
        if (chain is None) is not (key is None):
            given, missing = ("certificate.chain", "key") if key is None else ("key", "certificate.chain")
            store = f"{self.prefix}.keystore"
            raise ValueError(f"{store}.{given} is set, and {store}.{missing} is not: set both")
        if chain is not None and key is not None:
            with NamedTemporaryFile("w") as file:  # the standard library reads keys from files only
                file.write(f"{key}\n{chain}\n")
                file.flush()
                context.load_cert_chain(file.name, password=password)
        elif self.keystore_location is not None:
            self._require_pem("keystore", self.keystore_type)
            context.load_cert_chain(self.keystore_location, password=password)

    def _require_pem(self, store: str, type_: str) -> None:
        if type_.upper() != "PEM":
            property_ = f"{self.prefix}.{store}.type"
            raise ValueError(
                f"{property_} is {type_}: convert the {store} to PEM, as with openssl pkcs12, and set {property_}=PEM"
            )
