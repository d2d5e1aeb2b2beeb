"""Throttles of a move, as Kafka's tool sets and removes them (KIP-73): configurations of brokers and topics.

These throttles have no owner. At the end of a move those of its topics and of all brokers are removed, as `verify` of
Kafka's tool does. Throttles of PartitionReassignments have an owner, and can exist beside others."""

import asyncio
from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse

from controller_core.client.cluster import Call
from controller_core.client.configs import read_dynamic_configs, read_own_configs
from controller_core.client.errors import AdminError, InvalidArgument, Refused, require
from controller_core.client.reassigning.assignments import Replicas
from controller_core.client.reassigning.reassignments import SETTLES_MS, read_origins, read_replicas
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.throttles import (
    LISTS,
    RATES,
    Move,
    Throttle,
    combine_throttles,
)
from controller_core.wire.requests.configs import (
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceType,
    make_alter_configs_request,
    make_broker_resource,
    make_topic_resource,
)

_BROKER_MS: Final = 5_000


async def throttle(call: Call, targets: Mapping[TopicPartition, Replicas], bytes_per_second: int) -> None:
    """Set the throttle before the move begins. Raises `Refused` for an unknown partition, which would move without a
    throttle."""
    if bytes_per_second < 1:
        raise InvalidArgument(f"a throttle of {bytes_per_second} bytes per second would stop the move: give at least 1")
    origins = await _read_all_origins(call, targets)
    moves = {tp: Move(origin=origins[tp], target=target) for tp, target in targets.items()}
    wanted = combine_throttles([Throttle(bytes_per_second=bytes_per_second, moves=moves)])
    present = await read_own_configs(call, sorted({tp.topic for tp in targets}))
    changes = {}
    for entity, settings in wanted.items():
        kind, _, name = entity.partition("/")
        # Kafka 2.8 appends to a missing list with a leading comma, and then cannot read the list. So a missing list is
        # set.
        listed = [setting for setting in LISTS if kind != "brokers" and present[name].get(setting)]
        resource = ConfigResource(ResourceType.BROKER if kind == "brokers" else ResourceType.TOPIC, name)
        changes[resource] = tuple(
            ConfigChange(
                name=setting,
                operation=Operation.APPEND if setting in listed else Operation.SET,
                value=",".join(values),
            )
            for setting, values in settings.items()
            if values
        )
    topics_first = sorted(changes, key=lambda resource: resource.type is not ResourceType.TOPIC)
    # Topics first: `unthrottle` finds leftovers by their topics' lists.
    await _alter(call, {resource: changes[resource] for resource in topics_first})


async def unthrottle(call: Call, targets: Mapping[TopicPartition, Replicas]) -> None:
    """Remove the throttles of the topics, and the rates of all brokers, as Kafka's tool does.

    A broker that lost its partitions in the move also has a rate, and nothing tells which move it belongs to. So the
    caller must make sure that nothing moves in the cluster.

    Everything that can be removed is removed, even if other removals fail. Raises `AdminError` then."""
    present = await read_replicas(call, {tp.topic for tp in targets})
    topics = sorted({tp.topic for tp in targets} & {tp.topic for tp in present})
    configs = await read_own_configs(call, topics) if topics else {}
    throttled = [topic for topic in topics if set(LISTS) & set(configs[topic])]
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
    if throttled:
        await _alter(call, {make_topic_resource(topic): _delete_settings(*LISTS) for topic in throttled})
    if troubles:
        raise AdminError(f"a throttle may stay: {'; '.join(troubles)}. Verify again when all brokers answer")


async def _unthrottle_broker(call: Call, broker: BrokerId, *, looks: bool) -> None:
    """Remove the rates of a broker. `looks`: skip a broker that has none.

    Do not skip brokers that were throttled just now, because a broker learns of its own configuration a moment
    later."""
    if looks and not await read_dynamic_configs(call, broker, RATES):
        return
    await _alter(call, {make_broker_resource(broker): _delete_settings(*RATES)})


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


async def _alter(call: Call, changes: Mapping[ConfigResource, tuple[ConfigChange, ...]]) -> None:
    """Alter configurations. Each broker's own configurations are sent to that broker."""
    by_broker: dict[BrokerId | None, dict[ConfigResource, tuple[ConfigChange, ...]]] = {}
    for resource, changed in changes.items():
        owner = BrokerId(int(resource.name)) if resource.type is ResourceType.BROKER else None
        by_broker.setdefault(owner, {})[resource] = changed
    for owner, owned in by_broker.items():
        request = make_alter_configs_request(owned)
        if owner is None:
            response = await call.ask_controller_or_broker(request, IncrementalAlterConfigsResponse)
        else:
            response = await call.ask_broker(owner, request, IncrementalAlterConfigsResponse)
        for each in response.responses:
            require(f"the throttle of {each.resource_name}", each.error_code, each.error_message)
