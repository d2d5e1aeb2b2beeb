"""The certificate of an HTTPS port of a process, in files that are read again when they change, like a mounted Secret."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import structlog

from controller_core.security.trust import trust_each_certificate
from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

_LOOK_S: Final = 1.0
"""Least seconds between looks at the files."""

_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]


class UnusableCertificate(Exception):
    """A certificate, a key or an authority that cannot be used. The message names the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """The chain and the key that a port shows, and the authority of its clients' certificates, as PEM."""

    chain: Path
    key: Path
    client_ca: Path | None = None

    def make_context(self) -> ssl.SSLContext:
        """Return a TLS context. Raises `UnusableCertificate`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.chain, self.key, password="")  # never ask a terminal for a password
            if self.client_ca is not None:
                context.load_verify_locations(cafile=self.client_ca)
                trust_each_certificate(context)
                context.verify_mode = ssl.CERT_OPTIONAL  # some callers have none: probes, and API servers by default
        except (OSError, ValueError) as error:
            raise UnusableCertificate(f"{' or '.join(map(str, self.list()))} cannot be used: {error}") from error
        return context

    def list(self) -> tuple[Path, ...]:
        """Return the files."""
        return (self.chain, self.key, *filter(None, (self.client_ca,)))

    def read_stamp(self) -> _Stamp:
        """Return what changes with the files. Raises `OSError`."""
        found = [os.stat(file) for file in self.list()]
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in found)


class ServedCertificate:
    """The present certificate of a port. If new files cannot be used, the former ones remain in force."""

    def __init__(self, files: CertificateFiles) -> None:
        """Raises `UnusableCertificate`."""
        self._files = files
        self._complaints = Complaints(log)
        self._context = files.make_context()
        self._stamp = self._read_stamp()
        self._looked_s = monotonic()

    def find_context(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        if monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = monotonic()
            stamp = self._read_stamp()
            if stamp != self._stamp and stamp is not None:
                self._renew(stamp)
        return self._context

    def _renew(self, stamp: _Stamp) -> None:
        try:
            self._context = self._files.make_context()
        except UnusableCertificate as error:
            self._complaints.warn((), "the HTTPS port keeps its former certificate", reason=str(error))
            return
        self._stamp = stamp
        log.info("the HTTPS port has a new certificate", files=[str(file) for file in self._files.list()])

    def _read_stamp(self) -> _Stamp | None:
        try:
            return self._files.read_stamp()
        except OSError as error:
            self._complaints.warn((), "the HTTPS port keeps its former certificate", reason=str(error))
            return None
