"""Settings of a recorder."""

from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from controller_core.process.settings import ProcessSettings

_SERVERS: Final = r"^\s*[^,\s]+:\d{1,5}\s*(,\s*[^,\s]+:\d{1,5}\s*)*$"


class RecorderProcessSettings(ProcessSettings):
    """Settings of a process that records one cluster, with ZooKeeper or without."""

    zookeeper: str | None = Field(
        default=None, min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot]."
    )
    bootstrap_server: str | None = Field(
        default=None,
        pattern=_SERVERS,
        description="Brokers of a cluster without ZooKeeper: HOST:PORT[,HOST:PORT...].",
    )
    bootstrap_timeout_ms: int = Field(
        default=60_000,
        ge=1000,
        description="Milliseconds without an answer of any broker after which the process exits.",
    )
    command_config: Path | None = Field(
        default=None,
        description="File of client properties for a cluster without ZooKeeper, as for Kafka's tools.",
    )
    journal_directory: Path = Field(description="Folder to write the journal of the cluster's state to.")
    look_interval_ms: int = Field(default=100, ge=10, description="Minimum milliseconds between two reads of changes.")
    zookeeper_session_timeout_ms: int = Field(
        default=30_000, ge=1000, description="ZooKeeper session timeout in milliseconds."
    )

    @model_validator(mode="after")
    def _check_cluster(self) -> Self:
        if (self.zookeeper is None) == (self.bootstrap_server is None):
            raise ValueError("give either --zookeeper, or --bootstrap-server of a cluster without ZooKeeper")
        if self.command_config is not None and self.properties is not None:
            raise ValueError("--command-config and --properties both set the security of connections: give one")
        if self.command_config is not None and self.bootstrap_server is None:
            raise ValueError("--command-config needs --bootstrap-server; for ZooKeeper use --properties")
        return self
