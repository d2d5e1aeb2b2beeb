"""The settings of the operator: the command's options, then the environment (`KONTROLLER_*`)."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES


class OperatorSettings(BaseSettings):
    """All that can be set about the operator. How to reach the API server comes from the pod's service account, or from
    `KUBECONFIG`."""

    model_config = SettingsConfigDict(env_prefix="KONTROLLER_", extra="ignore", frozen=True)

    namespaces: tuple[str, ...] = Field(default=(), description="The namespaces to watch.")
    all_namespaces: bool = Field(default=False, description="Watch all namespaces.")
    liveness: str | None = Field(
        default=None,
        pattern=r"^http://[^/\s]+:[0-9]{1,5}(/\S*)?$",
        description="Where to answer liveness probes, http://HOST:PORT/PATH; readiness is answered beside it, at /readyz.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that serves /metrics.")
    metrics_port: int | None = Field(default=None, ge=0, le=65535, description="Its port; none: not served.")
    zookeeper_session_timeout_ms: int = Field(
        default=10_000, ge=1000, description="After how long without a sign of life ZooKeeper ends the session."
    )
    zookeeper_connect_timeout_ms: int = Field(
        default=10_000, ge=1000, description="How long one attempt to connect to ZooKeeper may take."
    )
    zookeeper_jute_maxbuffer_bytes: int = Field(
        default=DEFAULT_JUTE_MAXBUFFER_BYTES,
        ge=1 << 18,
        le=(1 << 31) - 1,
        description="The jute.maxbuffer of the ZooKeeper servers: what is larger is refused, and not sent.",
    )
    properties: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(),
        description="Files that say how clusters are secured, each by the names that a broker's server.properties has for "
        "it; zookeeper.connect among them says which cluster a file is for. Without ZooKeeper by the names that a client's "
        "has, where bootstrap.servers says it.",
    )
    webhook: str | None = Field(
        default=None,
        pattern=r"^https://[^/\s]+:[0-9]{1,5}$",
        description="Where to answer the API server whether an object may be as asked, https://HOST:PORT; none: nowhere.",
    )
    webhook_certificate: Path | None = Field(default=None, description="The file of its certificate, with its chain.")
    webhook_key: Path | None = Field(default=None, description="The file of the certificate's key.")
    lease: str | None = Field(
        default=None,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        description="The Lease that says which of several operators works; none: this one works, and must be the only one.",
    )
    lease_namespace: str | None = Field(
        default=None, max_length=63, description="The namespace of the Lease; none: that of the pod, or of KUBECONFIG."
    )
    lease_identity: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="What this process is called in the Lease, and no other; none: the host and a random number.",
    )
    lease_duration_s: int = Field(
        default=15, ge=3, le=300, description="For how long an operator that has stopped to renew the Lease keeps it."
    )
    workers: int = Field(
        default=8,
        ge=1,
        description="How many objects are worked on at the same time: with more all wait longer for the same API server.",
    )
    resync_interval_s: float = Field(
        default=600.0, gt=0, description="How often all objects are read again, whatever the watches said."
    )
    missing_cluster_grace_s: float = Field(
        default=60.0,
        ge=0,
        description="How long an object that is being deleted waits for a KafkaCluster that is not there.",
    )
    unreachable_grace_s: float = Field(
        default=3.0, ge=0, description="How long ZooKeeper may be out of reach before KafkaClusters say so."
    )
    objects_unreachable_grace_s: float = Field(
        default=60.0, ge=0, description="How long ZooKeeper may be out of reach before every other object says so."
    )

    @field_validator("properties", mode="before")
    @classmethod
    def _files_are_after_commas(cls, value: object) -> object:
        return tuple(value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _watches_something(self) -> "OperatorSettings":
        if self.all_namespaces == bool(self.namespaces):
            raise ValueError("say what to watch: either namespaces (--namespace) or all of them (--all-namespaces)")
        return self

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> "OperatorSettings":
        given = [self.webhook is not None, self.webhook_certificate is not None, self.webhook_key is not None]
        if any(given) and not all(given):
            raise ValueError("a webhook needs all of --webhook, --webhook-certificate and --webhook-key")
        return self
