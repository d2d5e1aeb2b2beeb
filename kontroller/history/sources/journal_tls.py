"""The certificates for journals that are served over HTTPS."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from controller_core.security.trust import make_client_context


class UnusableCertificates(Exception):
    """The files of certificates cannot be used. The message names them."""


@dataclass(slots=True, kw_only=True)
class JournalTls:
    """A client's certificates: the authorities that it trusts, and the certificate that it shows."""

    authorities: Path | None = None
    """PEM file of the trusted authorities; None: those of the system."""
    certificate: Path | None = None
    """PEM file of the certificate that is shown; None: none is."""
    key: Path | None = None
    """PEM file of its key; None: the certificate's file has it."""
    _context: ssl.SSLContext | None = field(default=None, init=False)
    _versions: list[tuple[int, int]] = field(default_factory=list, init=False)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context, a new one if the files have changed. Raises `UnusableCertificates`."""
        try:
            versions = [(stat.st_mtime_ns, stat.st_ino) for stat in (path.stat() for path in self._files())]
            if self._context is None or versions != self._versions:
                self._context, self._versions = self._make_context(), versions
        except ssl.SSLError as error:
            named = " and ".join(map(str, self._files()))
            raise UnusableCertificates(
                f"{named} cannot be used: {error}. Give PEM files, and a key without password"
            ) from error
        except OSError as error:
            raise UnusableCertificates(f"{error.filename} cannot be read: {error.strerror}") from error
        return self._context

    def _files(self) -> Iterator[Path]:
        yield from filter(None, (self.authorities, self.certificate, self.key))

    def _make_context(self) -> ssl.SSLContext:
        context = make_client_context(self.authorities)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key, password="")  # never ask at the terminal
        return context
