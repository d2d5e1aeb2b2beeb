"""`shutdownBroker` of seed 000: a broker that wants to stop hands over its leaderships first.

The broker repeats ControlledShutdown until it leads nothing, and only then stops (KIP-380 for its epoch). The last
broker that is not shutting down has no other broker to hand over to. It stays in service, so that a new topic still
finds a leader, and ISRs can grow when another broker starts. Kafka's controller marks it as shutting down all the same,
and no broker that may lead is left.

A broker whose shutdown is granted does not ask again. `/kontroller/granted_shutdowns` keeps the grant and the broker's
epoch, so that the next controller gives it no leaderships either. Writing a grant drops those of former registrations.
"""

from collections.abc import Mapping

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionReplica, TopicPartition
from controller_core.model.metadata import Broker
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse, RemainingPartition
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import LaterVersion, MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, ensure_znodes, make_reader, put
from controller_core.zk.session import Create, TransactionFailed, WriteOp, ZkNode

log = structlog.get_logger()

UNCHECKED_EPOCH = -1


async def on_controlled_shutdown(term: Term, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    """Hand over the broker's leaderships and answer with the rest; with an error if the broker or its epoch is unknown."""
    broker = term.state.brokers.get(request.broker_id)
    if broker is None:
        return make_refusal(ErrorCode.broker_not_available)
    if request.broker_epoch != UNCHECKED_EPOCH and request.broker_epoch < broker.epoch:
        return make_refusal(ErrorCode.stale_broker_epoch)
    if term.state.live - {broker.id}:
        remaining = await shutdown_broker(term, broker.id)
        if not remaining:
            await _keep_grant(term, broker)
    else:
        remaining = sorted(term.state.find_led_by(_find_replicated(term.state, broker.id), {broker.id}))
    log.info("controlled shutdown", broker=broker.id, remaining=[str(partition) for partition in remaining])
    return ControlledShutdownResponse(
        error_code=ErrorCode.none,
        remaining_partitions=tuple(
            RemainingPartition(topic_name=partition.topic, partition_index=partition.partition)
            for partition in remaining
        ),
    )


async def shutdown_broker(term: Term, broker: BrokerId) -> list[TopicPartition]:
    """Run shutdownBroker in the order of the specification. Return the partitions that the broker still leads.

    Partitions whose only replica is on the broker are left alone, because no other broker can take them over.
    """
    term.state.begin_shutdown(broker)
    replicated = _find_replicated(term.state, broker)
    led = dict.fromkeys(term.state.find_led_by(replicated, {broker}))
    # 1. each partition whose leader is on shutdown broker -> OnlinePartition
    await partition_machine.bring_online(term, led, Election.CONTROLLED_SHUTDOWN)
    # 2. and 3. each replica on shutdown broker that is follower: StopReplica (w/o deletion), -> OfflineReplica.
    # One that led until now is a follower only when its broker was sent that, and has left the ISR with step 1.
    followers = [PartitionReplica(partition, broker) for partition in replicated if partition not in led]
    await replica_machine.take_out(term, followers)
    # The others no longer see it as alive, as soon as it leads nothing (`BrokerRequests`), also if it never did.
    term.batch.update_metadata(())
    return sorted(term.state.find_led_by(replicated, {broker}))


async def resume(term: Term) -> None:
    """Take the leaderships again from brokers whose shutdown a former controller granted."""
    granted = await _read_granted(term)
    for broker in granted.keys() - term.state.brokers.keys():
        term.state.mark_drained(broker)
    for broker in sorted(_keep_present(term.state, granted)):
        if term.state.live - {broker}:
            log.info("shutdown was granted by a former controller", broker=broker)
            await shutdown_broker(term, broker)


async def _read_granted(term: Reads) -> Mapping[BrokerId, BrokerEpoch]:
    node = (await term.zk.read_many([paths.GRANTED_SHUTDOWNS]))[0]
    if node is None:
        return {}
    try:
        return codecs.decode_granted_shutdowns(node.data)
    except LaterVersion as error:
        term.state.unusable.report(paths.GRANTED_SHUTDOWNS, "list of granted shutdowns is left alone", error)
    except MalformedZnode as error:
        term.state.unusable.report(paths.GRANTED_SHUTDOWNS, "unreadable list of granted shutdowns, ignored", error)
    return {}


def _keep_present(state: ReadOnlyState, granted: Mapping[BrokerId, BrokerEpoch]) -> dict[BrokerId, BrokerEpoch]:
    """Return the grants of brokers that have been registered ever since."""
    known = state.brokers
    return {id_: epoch for id_, epoch in granted.items() if id_ in known and known[id_].epoch == epoch}


async def _keep_grant(term: Writes, broker: Broker) -> None:
    """Write the grant, fenced. If it cannot be written the broker may stop nevertheless."""

    def enter(node: ZkNode | None) -> list[WriteOp]:
        granted: Mapping[BrokerId, BrokerEpoch] = {}
        try:
            granted = codecs.decode_granted_shutdowns(node.data) if node else {}
        except LaterVersion:
            return []
        except MalformedZnode:
            pass
        if granted.get(broker.id) == broker.epoch:
            return []
        data = codecs.encode_granted_shutdowns(_keep_present(term.state, granted) | {broker.id: broker.epoch})
        return [put(paths.GRANTED_SHUTDOWNS, node, data)]

    try:
        await ensure_znodes(term.zk, [Create(path=paths.KONTROLLER)], term.writer.transact)
        await compare_and_set(make_reader(term.zk, paths.GRANTED_SHUTDOWNS), enter, term.writer.transact)
    except (Contended, TransactionFailed) as why:
        term.state.unusable.report(paths.GRANTED_SHUTDOWNS, "list of granted shutdowns not written", why)
    else:
        term.state.unusable.clear(paths.GRANTED_SHUTDOWNS)


def _find_replicated(state: ReadOnlyState, broker: BrokerId) -> list[TopicPartition]:
    """Return the partitions on a broker that have replicas elsewhere."""
    return [
        partition
        for partition in state.list_partitions_on([broker])
        if len(state.assignment(partition).replicas) > 1
        and partition in state.states
        and not state.is_being_deleted(partition.topic)
    ]


def make_refusal(error_code: ErrorCode) -> ControlledShutdownResponse:
    """Return the response to a request that is refused for other reasons than leaderships."""
    return ControlledShutdownResponse(error_code=error_code, remaining_partitions=())


def refuse(error_code: ErrorCode) -> ControlledShutdownResponse:
    """Return the response of a process that is not the controller. Kafka has an error of its own for this request."""
    is_elsewhere = error_code is ErrorCode.not_controller
    return make_refusal(ErrorCode.stale_controller_epoch if is_elsewhere else error_code)
