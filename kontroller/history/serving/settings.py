"""The settings of the server of a report."""

from pathlib import Path

from pydantic import Field

from controller_core.process.settings import CommonSettings


class ServeSettings(CommonSettings):
    """The settings, from the command line, then from the environment (`KONTROLLER_*`)."""

    metrics_port: int = Field(
        default=9405, ge=0, le=65535, description="Port of the HTTP server: the report, /metrics and /healthz."
    )
    report: Path = Field(description="Folder that `kontroller history report` writes to. It need not exist yet.")
