"""Throttles of a move (KIP-73): configurations of brokers and topics, or a throttle that the controller owns.

Kontroller owns throttles: a client sets one of the controller's own settings (`THROTTLE_SETTING`), and the controller
writes the configurations, also those of brokers that are down, and removes them with the move.

With Kafka's controllers a throttle has no owner. Only live brokers can be throttled. At the end of a move the throttles
of its topics and of all brokers are removed, as `verify` of Kafka's tool does."""

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.static.protocol import RequestPayload

from controller_core.client.cluster import PATIENCE_MS, Call, Response
from controller_core.client.errors import AdminError, InvalidArgument, OutcomeUnknown, Refused, Unreachable, require
from controller_core.client.reassigning.assignments import Replicas, format_reassignment
from controller_core.client.reassigning.reassignments import SETTLES_MS, read_origins, read_replicas
from controller_core.client.reassigning.throttle_configs import (
    change_throttle_configs,
    find_changes,
    read_throttle_configs,
)
from controller_core.client.transport.request_client import is_refused_by_another
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.throttles import (
    LISTS,
    RATES,
    THROTTLE_SETTING,
    Move,
    Throttle,
    adjust_config,
    broker_entity,
    combine_throttles,
    topic_entity,
)
from controller_core.wire.requests.configs import (
    ConfigChange,
    Operation,
    make_alter_configs_request,
    make_broker_resource,
    make_describe_configs_request,
)
from controller_core.zk.codecs import encode_throttle

_BROKER_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleSet:
    """A throttle that was set."""

    is_owned: bool
    """True if the controller ends it with the move."""
    absent: tuple[BrokerId, ...] = ()
    """The brokers of the move that are down. They get an owned throttle when they start, and no other one."""


async def throttle(call: Call, targets: Mapping[TopicPartition, Replicas], bytes_per_second: int) -> ThrottleSet:
    """Set the throttle before the move begins. Raises `Refused` for an unknown partition, which would move without a
    throttle."""
    if bytes_per_second < 1:
        raise InvalidArgument(f"a throttle of {bytes_per_second} bytes per second would stop the move: give at least 1")
    origins = await _read_all_origins(call, targets)
    moves = {tp: Move(origin=origins[tp], target=target) for tp, target in targets.items()}
    wished = Throttle(bytes_per_second=bytes_per_second, moves=moves)
    involved = {broker for move in moves.values() for broker in (*move.origin, *move.target)}
    if await _give_to_controller(call, targets, wished):
        return ThrottleSet(is_owned=True, absent=tuple(sorted(involved - call.cluster.brokers.keys())))
    # Topics first: `unthrottle` finds leftovers by their topics' lists.
    await _throttle_topics(call, wished)
    receiving = {broker for move in moves.values() for broker in move.adding}
    return ThrottleSet(
        is_owned=False, absent=await throttle_brokers(call, involved, bytes_per_second, required=receiving)
    )


async def throttle_brokers(
    call: Call, brokers: Iterable[BrokerId], bytes_per_second: int, *, required: Collection[BrokerId] = ()
) -> tuple[BrokerId, ...]:
    """Set the rates of brokers. Return those that are down. Raises `Unreachable` if a required one is."""
    await call.metadata()
    rates = [ConfigChange(name=name, operation=Operation.SET, value=str(bytes_per_second)) for name in RATES]
    absent = []
    for broker in sorted(brokers):
        patient = call if broker in required else call.cluster.call(min(call.left_ms, _BROKER_MS))
        try:
            await change_throttle_configs(patient.target_broker(broker), {broker_entity(broker): rates})
        except Unreachable:
            if broker in required:
                raise
            absent.append(broker)
    return tuple(absent)


async def unthrottle(call: Call, targets: Mapping[TopicPartition, Replicas]) -> None:
    """End the throttle that the controller owns, and remove the throttles of the topics and the rates of all brokers,
    as Kafka's tool does.

    A broker that lost its partitions in the move also has a rate, and nothing tells which move it belongs to. So the
    caller must make sure that nothing moves in the cluster.

    Everything that can be removed is removed, even if other removals fail. Raises `AdminError` then."""
    await end_owned(call, targets)
    present = await read_replicas(call, {tp.topic for tp in targets})
    topics = sorted({tp.topic for tp in targets} & {tp.topic for tp in present})
    configs = await read_throttle_configs(call.target_any(), map(topic_entity, topics))
    throttled = [topic for topic in topics if set(LISTS) & set(configs.get(topic_entity(topic), ()))]
    replicas = (*targets.values(), *present.values()) if throttled else ()
    involved = {broker for each in replicas for broker in each}
    # All brokers, because a broker that lost its replicas in the move still has a rate.
    brokers = sorted(involved | set(call.cluster.brokers))
    patient = call.cluster.call(min(call.left_ms, _BROKER_MS))
    ended = await asyncio.gather(
        *(_unthrottle_broker(patient, broker, looks=broker not in involved) for broker in brokers),
        return_exceptions=True,
    )
    troubles = []
    for broker, end in zip(brokers, ended, strict=True):
        if isinstance(end, AdminError):
            troubles.append(f"broker {broker}: {end}")
        elif end is not None:
            raise end
    lists = {topic_entity(topic): _delete_settings(*LISTS) for topic in throttled}
    await change_throttle_configs(call.target_controller_or_broker(), lists)
    if troubles:
        raise AdminError(f"a throttle may stay: {'; '.join(troubles)}. Verify again when all brokers answer")


async def end_owned(call: Call, targets: Mapping[TopicPartition, Replicas]) -> None:
    """End the throttle of a move that the controller owns, if it has one."""
    await _give_to_controller(call, targets, None)


async def _throttle_topics(call: Call, wished: Throttle) -> None:
    wanted = {at: each for at, each in combine_throttles([wished]).items() if at.startswith("topics/")}
    present = await read_throttle_configs(call.target_any(), sorted(wanted))
    changes = {}
    for entity, config in present.items():
        after, _ = adjust_config(config, {}, wanted[entity])
        changes[entity] = find_changes(entity, config, after, sets_missing_lists=True)
    await change_throttle_configs(
        call.target_controller_or_broker(), {at: each for at, each in changes.items() if each}
    )


async def _unthrottle_broker(call: Call, broker: BrokerId, *, looks: bool) -> None:
    """Remove the rates of a broker. `looks`: skip a broker that has none.

    Do not skip brokers that were throttled just now, because a broker learns of its own configuration a moment
    later."""
    client, entity = call.target_broker(broker), broker_entity(broker)
    if looks and not (await read_throttle_configs(client, [entity])).get(entity):
        return
    await change_throttle_configs(client, {entity: _delete_settings(*RATES)})


async def _give_to_controller(call: Call, targets: Mapping[TopicPartition, Replicas], wished: Throttle | None) -> bool:
    """Set the throttle of a move that the controller owns; None ends it. Return False if the controller owns none.

    The same move has the same owner, so giving it again changes its throttle. Both requests may be repeated."""
    plan = hashlib.sha256(format_reassignment(targets).encode()).hexdigest()
    operation = Operation.DELETE if wished is None else Operation.SET
    value = encode_throttle(wished).decode() if wished is not None else None
    change = ConfigChange(name=f"{THROTTLE_SETTING}.plan-{plan[:16]}", operation=operation, value=value)
    while True:
        controller = await _find_controller(call)
        resource = make_broker_resource(controller)
        asked = make_describe_configs_request([resource], [THROTTLE_SETTING])
        described = await _ask(call, controller, asked, DescribeConfigsResponse)
        if described is None:
            continue
        for each in described.results:
            require(f"the throttles of controller {controller}", each.error_code, each.error_message)
        if not any(said.name == THROTTLE_SETTING for each in described.results for said in each.configs):
            return False
        request = make_alter_configs_request({resource: (change,)})
        altered = await _ask(call, controller, request, IncrementalAlterConfigsResponse)
        if altered is not None:
            for result in altered.responses:
                require("the throttle of the move", result.error_code, result.error_message)
            return True


async def _find_controller(call: Call) -> BrokerId:
    await call.find_controller_address()
    if call.cluster.controller is None:
        raise Unreachable("the cluster has no controller")
    return call.cluster.controller


async def _ask(
    call: Call, controller: BrokerId, request: RequestPayload, response_type: type[Response]
) -> Response | None:
    """Return the answer of the controller about itself; None if it is not the controller any longer, or is silent."""
    address = call.cluster.brokers[controller]
    try:
        response = await call.ask_at(address, request, response_type, min(call.left_ms, PATIENCE_MS))
    except (Unreachable, OutcomeUnknown) as error:
        call.note(str(error))
    else:
        if not is_refused_by_another(response):
            return response
        call.note(f"{address} is not the controller")
    call.cluster.forget()
    await call.pause()
    return None


async def _read_all_origins(call: Call, targets: Mapping[TopicPartition, Replicas]) -> dict[TopicPartition, Replicas]:
    """Return the original replicas. Wait a moment for brokers to learn of new topics."""
    settled_ms = min(SETTLES_MS, call.left_ms // 2)
    until_ms = call.left_ms - settled_ms
    while True:
        origins = await read_origins(call, targets)
        missing = [tp for tp in targets if tp not in origins]
        if not missing:
            return origins
        if call.left_ms <= until_ms:
            raise Refused(str(missing[0]), ErrorCode.unknown_topic_or_partition, None)
        await call.pause()


def _delete_settings(*settings: str) -> tuple[ConfigChange, ...]:
    return tuple(ConfigChange(name=setting, operation=Operation.DELETE) for setting in settings)
