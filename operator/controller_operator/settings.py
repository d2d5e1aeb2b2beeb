"""The settings of the operator: the command's options, then the environment (`KONTROLLER_*`)."""

from pathlib import Path

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from controller_core.audit.settings import AuditSettings
from controller_core.process.settings import TOPIC_RULES_DESCRIPTION, CommonSettings, Several
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES


class OperatorSettings(CommonSettings, AuditSettings):
    """All settings of the operator. The access to the API server comes from the pod's service account or
    `KUBECONFIG`."""

    model_config = SettingsConfigDict(extra="ignore")

    namespace: Several[str] = Field(default=(), description="The namespaces to watch.")
    all_namespaces: bool = Field(default=False, description="Watch all namespaces.")
    liveness: str | None = Field(
        default=None,
        pattern=r"^http://[^/\s]+:[0-9]{1,5}(/\S*)?$",
        description="URL that answers liveness probes, http://HOST:PORT/PATH. Readiness is at /readyz of the same port.",
    )
    zookeeper_session_timeout_ms: int = Field(
        default=10_000, ge=1000, description="Milliseconds without a heartbeat after which ZooKeeper ends the session."
    )
    zookeeper_jute_maxbuffer_bytes: int = Field(
        default=DEFAULT_JUTE_MAXBUFFER_BYTES,
        ge=1 << 18,
        le=(1 << 31) - 1,
        description="The jute.maxbuffer of the ZooKeeper servers. Larger requests are refused, and not sent.",
    )
    properties: Several[Path] = Field(
        default=(),
        description="Properties files with the security settings of clusters. With ZooKeeper, a file has properties of a "
        "broker's server.properties, and its zookeeper.connect names the cluster. Without ZooKeeper, it has client "
        "properties, and bootstrap.servers names the cluster.",
    )
    topic_rules: Path | None = Field(default=None, description=TOPIC_RULES_DESCRIPTION)
    webhook: str | None = Field(
        default=None,
        pattern=r"^https://[^/\s]+:[0-9]{1,5}$",
        description="Address of the validating webhook, https://HOST:PORT. Default: no webhook.",
    )
    webhook_certificate: Path | None = Field(default=None, description="File with the webhook's certificate chain.")
    webhook_key: Path | None = Field(default=None, description="File with the key of the webhook's certificate.")
    webhook_client_ca: Path | None = Field(
        default=None,
        description="File with the certificates of the authority that signs the API server's client certificate. The "
        "webhook then answers only the API server. Default: it answers anybody, without details about other objects.",
    )
    webhook_client_name: Several[str] = Field(
        default=(), description="Common names of the client certificates that may call the webhook."
    )
    lease: str | None = Field(
        default=None,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        description="Name of the Lease that elects one of several operators. Default: none; run only one operator then.",
    )
    lease_namespace: str | None = Field(
        default=None, max_length=63, description="Namespace of the Lease. Default: that of the pod, or of KUBECONFIG."
    )
    lease_identity: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        description="Unique name of this process in the Lease. Default: the host name and a random number.",
    )
    lease_duration_seconds: int = Field(
        default=15,
        ge=3,
        le=300,
        description="Seconds for which an operator that stopped renewing the Lease keeps it.",
    )
    workers: int = Field(
        default=8,
        ge=1,
        description="Number of objects that are reconciled at the same time.",
    )
    resync_interval_seconds: float = Field(
        default=600.0, gt=0, description="Seconds between complete relists of all objects, regardless of the watches."
    )
    missing_cluster_grace_seconds: float = Field(
        default=60.0,
        ge=0,
        description="Seconds that an object that is being deleted waits for a missing KafkaCluster.",
    )
    unreachable_grace_seconds: float = Field(
        default=3.0, ge=0, description="Seconds for which ZooKeeper may be unreachable before KafkaClusters say so."
    )
    objects_unreachable_grace_seconds: float = Field(
        default=60.0, ge=0, description="Seconds for which ZooKeeper may be unreachable before other objects say so."
    )

    @model_validator(mode="after")
    def _watches_something(self) -> "OperatorSettings":
        if self.all_namespaces == bool(self.namespace):
            raise ValueError("choose what to watch: either namespaces (--namespace) or all of them (--all-namespaces)")
        return self

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> "OperatorSettings":
        given = [self.webhook is not None, self.webhook_certificate is not None, self.webhook_key is not None]
        if any(given) and not all(given):
            raise ValueError("a webhook needs all of --webhook, --webhook-certificate and --webhook-key")
        if self.webhook_client_ca is not None and self.webhook is None:
            raise ValueError("--webhook-client-ca has no effect without --webhook")
        if (self.webhook_client_ca is not None) != bool(self.webhook_client_name):
            raise ValueError(
                "--webhook-client-ca and --webhook-client-name need each other: an authority may sign certificates of "
                "others than the API server"
            )
        return self
