"""Requests to one broker about the log directories of its replicas (AlterReplicaLogDirs, KIP-113).

The answers are about the acceptance alone. Only the broker's log directories show that a replica has moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from controller_core.client.log_dirs.log_sizes import BrokerClient, ask_log_sizes
from controller_core.client.log_dirs.placing import ACCEPTED, Directories, place_replicas
from controller_core.model.ids import PartitionReplica, TopicPartition
from controller_operator.kafka.requests.rights import ALTER_CLUSTER, describe_error


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReplicas:
    """Asks brokers to put replicas into these log directories. A broker remembers that for a replica to come."""

    directories: Directories

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return _partitions(self.directories)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnReplicas:
    """Asks brokers to end the copying of replicas to these log directories."""

    directories: Directories

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return _partitions(self.directories)


PlacementStep = PlaceReplicas | ReturnReplicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementReply:
    """The results of a step, by replica. Those in neither mapping were accepted."""

    step: PlacementStep
    refused: Mapping[PartitionReplica, str] = field(default_factory=dict)
    """The refused replicas, and the brokers' reasons."""
    unasked: Mapping[PartitionReplica, str] = field(default_factory=dict)
    """The replicas whose brokers did not answer, and the reasons."""

    @property
    def trouble(self) -> str | None:
        """The reason why some replicas have no answer; None if all have one."""
        return next(iter(self.unasked.values()), None)

    @property
    def accepted(self) -> Directories:
        """The part of the step that was accepted."""
        failed = self.refused.keys() | self.unasked.keys()
        return {replica: path for replica, path in self.step.directories.items() if replica not in failed}


async def place_at(wanted: Mapping[TopicPartition, str], client: BrokerClient) -> dict[TopicPartition, str]:
    """Ask a broker to put its replicas into these directories. Return the refusals. Raises `AdminError`."""
    results = await place_replicas(wanted, client) if wanted else {}
    return {partition: _explain(result.code) for partition, result in results.items() if result.code not in ACCEPTED}


async def return_at(wanted: Mapping[TopicPartition, str], client: BrokerClient) -> dict[TopicPartition, str]:
    """Ask a broker to end the copying to these directories. Return the refusals. Raises `AdminError`."""
    found = await ask_log_sizes([*wanted], client)
    copied = [tp for tp, future in found.futures.items() if future.directory == wanted[tp]]
    return await place_at({tp: found.directory_of[tp] for tp in copied if tp in found.directory_of}, client)


def _explain(code: ErrorCode) -> str:
    match code:
        case ErrorCode.log_dir_not_found:
            return "it has no such log directory"
        case ErrorCode.kafka_storage_error:
            return "one of its log directories has failed"
        case _:
            return describe_error(code, None, ALTER_CLUSTER)


def _partitions(directories: Directories) -> tuple[TopicPartition, ...]:
    return tuple(dict.fromkeys(replica.topic_partition for replica in directories))
