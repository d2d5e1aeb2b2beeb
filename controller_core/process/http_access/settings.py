"""The settings of the HTTP port of a process: its address, its certificate, and who may read there."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class HttpSettings(BaseSettings):
    """The settings of the HTTP port of any process."""

    model_config = SettingsConfigDict(env_prefix="KONTROLLER_", extra="forbid", frozen=True)

    metrics_host: str = Field(default="127.0.0.1", description="Address of the HTTP server (/metrics, /healthz, ...).")
    metrics_port: int | None = Field(
        default=None, ge=0, le=65535, description="Port of the HTTP server. Default: no HTTP server."
    )
    metrics_certificate: Path | None = Field(
        default=None,
        description="File with the certificate chain of the HTTP server, as PEM. The server then speaks only HTTPS. "
        "Changed files are used without a restart. Default: HTTP.",
    )
    metrics_key: Path | None = Field(
        default=None, description="File with the key of --metrics-certificate, as PEM without a password."
    )
    metrics_client_ca: Path | None = Field(
        default=None,
        description="File with the authorities whose certificates admit readers of /metrics and /journal. Probes need "
        "none. Default: no certificates of clients.",
    )
    metrics_token_file: Path | None = Field(
        default=None,
        description="File with the token that admits readers of /metrics and, without --journal-token-file, /journal. "
        "Default: everybody who can reach the port may read.",
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if (self.metrics_certificate is None) != (self.metrics_key is None):
            raise ValueError("--metrics-certificate and --metrics-key go together: give both, or neither")
        if self.metrics_client_ca is not None and self.metrics_certificate is None:
            raise ValueError(
                "--metrics-client-ca needs --metrics-certificate and --metrics-key: HTTP has no certificates"
            )
        return self
