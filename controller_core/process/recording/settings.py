"""All that can be set about a recorder."""

from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from controller_core.process.settings import ProcessSettings

_SERVERS: Final = r"^\s*[^,\s]+:\d{1,5}\s*(,\s*[^,\s]+:\d{1,5}\s*)*$"


class RecorderProcessSettings(ProcessSettings):
    """Of one cluster, with ZooKeeper or without."""

    zookeeper: str | None = Field(
        default=None, min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot]."
    )
    bootstrap: str | None = Field(
        default=None,
        pattern=_SERVERS,
        description="Of a cluster without ZooKeeper: some of its brokers, HOST:PORT[,HOST:PORT...].",
    )
    bootstrap_timeout_ms: int = Field(
        default=60_000,
        ge=1000,
        description="How long a cluster without ZooKeeper may be out of reach before the process exits.",
    )
    command_config: Path | None = Field(
        default=None,
        description="How brokers and controllers of a cluster without ZooKeeper are spoken to: a file of properties, as "
        "Kafka's tools take it.",
    )
    journal_directory: Path = Field(description="Where the journal of the cluster's state is written.")
    look_interval_ms: int = Field(
        default=100, ge=10, description="How much time passes at least between two looks at what has changed."
    )
    zookeeper_session_timeout_ms: int = Field(
        default=30_000, ge=1000, description="After how long without a sign of life ZooKeeper ends the session."
    )

    @model_validator(mode="after")
    def _says_which_cluster(self) -> Self:
        if (self.zookeeper is None) == (self.bootstrap is None):
            raise ValueError(
                "say which cluster: --zookeeper, or --bootstrap of a cluster that has none; one of them, and not both"
            )
        if self.command_config is not None and self.properties is not None:
            raise ValueError("--command-config and --properties both say how brokers are spoken to: give one")
        if self.command_config is not None and self.bootstrap is None:
            raise ValueError("--command-config is for --bootstrap: of a ZooKeeper, --properties says how it is secured")
        return self
