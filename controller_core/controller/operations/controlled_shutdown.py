"""`shutdownBroker` of seed 000: a broker that wants to stop asks for it, and hands over what it leads first.

The broker asks with ControlledShutdown until nothing remains that it leads, and only then stops (KIP-380 for its epoch).

The last broker that is not shutting down has nobody to hand over to. It stays in service and hears what remains, so
that a new topic still finds a leader, and ISRs grow when another broker comes; it asks again, or stops. Kafka's
controller takes it for one that shuts down all the same, and no broker is left that may lead.
"""

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse, RemainingPartition

log = structlog.get_logger()

UNCHECKED_EPOCH = -1


async def on_controlled_shutdown(term: Term, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    """Answers which partitions the broker still leads; an error where it is not the broker that the controller knows."""
    broker = term.state.brokers.get(request.broker_id)
    if broker is None:
        return refusal(ErrorCode.broker_not_available)
    if request.broker_epoch != UNCHECKED_EPOCH and request.broker_epoch < broker.epoch:
        return refusal(ErrorCode.stale_broker_epoch)
    if term.state.live - {broker.id}:
        remaining = await shutdown_broker(term, broker.id)
    else:
        remaining = sorted(term.state.led_by(_replicated(term, broker.id), {broker.id}))
    log.info("controlled shutdown", broker=broker.id, remaining=[str(partition) for partition in remaining])
    return ControlledShutdownResponse(
        error_code=ErrorCode.none,
        remaining_partitions=tuple(
            RemainingPartition(topic_name=partition.topic, partition_index=partition.partition)
            for partition in remaining
        ),
    )


async def shutdown_broker(term: Term, broker: BrokerId) -> list[TopicPartition]:
    """shutdownBroker, its steps in the order of the specification; returns what the broker still leads.

    Partitions whose only replica is on the broker are left alone: nobody can take them over."""
    term.state.begin_shutdown(broker)
    replicated = _replicated(term, broker)
    led = dict.fromkeys(term.state.led_by(replicated, {broker}))
    # 1. each partition whose leader is on shutdown broker -> OnlinePartition
    await partition_machine.to_online(term, led, Election.CONTROLLED_SHUTDOWN)
    # 2. and 3. each replica on shutdown broker that is follower: StopReplica (w/o deletion), -> OfflineReplica.
    # One that led until now is a follower only when its broker was sent that, and has left the ISR with step 1.
    followers = [PartitionReplica(partition, broker) for partition in replicated if partition not in led]
    await replica_machine.take_out(term, followers)
    return sorted(term.state.led_by(replicated, {broker}))


def _replicated(term: Term, broker: BrokerId) -> list[TopicPartition]:
    """The partitions on a broker that have replicas elsewhere."""
    return [
        partition
        for partition in term.state.partitions_on([broker])
        if len(term.state.assignment(partition).replicas) > 1
        and partition in term.state.states
        and not term.state.is_being_deleted(partition.topic)
    ]


def refusal(error_code: ErrorCode) -> ControlledShutdownResponse:
    """The answer that something else than leaderships stands in the way."""
    return ControlledShutdownResponse(error_code=error_code, remaining_partitions=())


def refuse(error_code: ErrorCode) -> ControlledShutdownResponse:
    """The answer of a process that is not the controller: Kafka's says so with an error of its own for this request."""
    is_elsewhere = error_code is ErrorCode.not_controller
    return refusal(ErrorCode.stale_controller_epoch if is_elsewhere else error_code)
