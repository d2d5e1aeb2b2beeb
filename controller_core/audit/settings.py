"""The settings of the audit, which the controller and the operator have."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from controller_core.audit.sinks import SYSLOG_FORM, FileSink, Sink, SyslogSink


class AuditSettings(BaseSettings):
    """The places to which a process exports its audit records."""

    model_config = SettingsConfigDict(env_prefix="KONTROLLER_", extra="forbid", frozen=True)

    audit_file: Path | None = Field(
        default=None,
        description="File to append an audit record of each change that somebody asks for, as JSON lines. Default: no "
        "file.",
    )
    audit_file_bytes: int = Field(
        default=64 << 20, ge=1 << 16, description="Bytes after which a new audit file begins."
    )
    audit_files: int = Field(default=10, ge=1, le=1000, description="Finished audit files to keep: FILE.1, FILE.2, ...")
    audit_syslog: str | None = Field(
        default=None,
        pattern=SYSLOG_FORM,
        description="Syslog server for audit records (RFC 5424): udp://HOST:PORT, tcp://HOST:PORT, or the path of a "
        "socket. Default: none.",
    )

    def open_audit_sinks(self) -> Iterator[Sink]:
        """Yield the sinks. None of them is opened before its first record."""
        if self.audit_file is not None:
            yield FileSink(self.audit_file, file_bytes=self.audit_file_bytes, files=self.audit_files)
        if self.audit_syslog is not None:
            yield SyslogSink(self.audit_syslog)
