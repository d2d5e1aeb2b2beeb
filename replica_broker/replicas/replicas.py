"""All replicas on this broker. SIGNATURES ONLY FOR NOW: serving and membership can build on them."""

from collections.abc import Callable, Mapping

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId, LeaderEpoch, TopicName, TopicPartition
from controller_core.wire.messages import LeaderAndIsrRequest, LeaderAndIsrResponse, StopReplicaRequest, StopReplicaResponse
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import EpochEnd, Fetch, Fetched, IsolationLevel, ListedOffset
from replica_broker.replicas.seams import IsrWriter, LeaderLinks, TopicConfigs
from replica_broker.replicas.settings import ReplicaSettings


class Replicas:
    """See the module."""

    def __init__(
        self,
        settings: ReplicaSettings,
        directories: "LogDirectories",
        links: LeaderLinks,
        isr_writer: IsrWriter,
        configs: TopicConfigs,
        clock: Clock,
        *,
        is_known: Callable[[TopicPartition], bool] = lambda topic_partition: False,
        on_directory_failed: Callable[[], object] = lambda: None,
    ) -> None:
        """`is_known`: whether the metadata cache has the partition; one that is not hosted is then NOT_LEADER_OR_FOLLOWER
        instead of UNKNOWN_TOPIC_OR_PARTITION. `on_directory_failed`: membership notifies the controller."""

    def start(self) -> None:
        """Begins what goes on in the background. Needs a running loop."""

    async def close(self) -> None:
        """Stops it, and writes the high watermarks. The logs are closed by their directories."""

    @property
    def hosted(self) -> Mapping[TopicPartition, Partition]: ...

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def on_topic_configs_changed(self, topic: TopicName) -> None: ...

    async def append(self, topic_partition: TopicPartition, records: bytes, *, acks: int, timeout_ms: int) -> "Appended":
        """Raises `ReplicaRefused` and A's `LogError`, both with `error_code`."""

    async def fetch(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        """Raises nothing: errors are in `Fetched.error_code`."""

    def list_offset(
        self,
        topic_partition: TopicPartition,
        timestamp_ms: int,
        *,
        current_leader_epoch: LeaderEpoch,
        isolation: IsolationLevel,
        replica_id: BrokerId,
    ) -> ListedOffset:
        """Raises `ReplicaRefused`."""

    def end_of_epoch(
        self, topic_partition: TopicPartition, *, current_leader_epoch: LeaderEpoch, asked_epoch: LeaderEpoch
    ) -> EpochEnd:
        """Raises `ReplicaRefused`."""
