"""The configurations that throttle moves (KIP-73), over Kafka's protocol: the one place that reads and changes them.

The command's throttles (`throttles`), and the operator's in clusters without ZooKeeper, are made of these. With
ZooKeeper, `controller_core.zk.throttle_writes` writes the same configurations in transactions."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse

from controller_core.client.errors import AdminError, Refused
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.throttles import ALL_BROKERS, LISTS, RATES, EntityPath, broker_entity, topic_entity
from controller_core.wire.requests.configs import (
    BROKER_DEFAULTS,
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceType,
    make_alter_configs_request,
    make_describe_configs_request,
    make_topic_resource,
)

MAX_ASKED: Final = 100
"""Resources of one request."""
LONGEST_VALUE: Final = (1 << 15) - 1
"""Characters of a value. Kafka's controller closes the connection over a longer one, or refuses it, by its release."""
_SOURCE_OF_TOPIC, _SOURCE_OF_BROKER, _SOURCE_OF_DEFAULTS = 1, 2, 3

Configs: TypeAlias = Mapping[EntityPath, Mapping[str, str]]
"""The throttles in the configurations as read. Configurations of deleted topics are missing."""
Changes: TypeAlias = Mapping[EntityPath, Sequence[ConfigChange]]
T = TypeVar("T")


class ListTooLongError(AdminError):
    """A topic's list has no room for the new entries. Nothing was changed."""


class ConfigRefused(Refused):
    """A server does not show, or does not change, one configuration."""

    def __init__(self, entity: EntityPath, code: ErrorCode, message: str | None) -> None:
        super().__init__(f"the throttle of {describe_entity(entity)}", code, message)
        self.entity = entity
        self.message = message


Refusals: TypeAlias = MutableMapping[EntityPath, ConfigRefused]
"""Collects the configurations that are not shown or not changed."""


def describe_entity(entity: EntityPath) -> str:
    """Return the owner of a configuration in words."""
    kind, _, name = entity.partition("/")
    if entity == ALL_BROKERS:
        return "the defaults of brokers"
    return f"{'broker' if kind == 'brokers' else 'topic'} {name}"


async def read_throttle_configs(
    client: ControllerClient, entities: Iterable[EntityPath], *, refusals: Refusals | None = None
) -> Configs:
    """Return the throttles that are set in the configurations themselves.

    Raises `ConfigRefused`, unless `refusals` collects what is not shown."""
    refused: Refusals = {} if refusals is None else refusals
    found: dict[EntityPath, Mapping[str, str]] = {}
    for part in _divide(entities):
        request = make_describe_configs_request(map(_make_resource, part), (*RATES, *LISTS))
        for each in (await client.ask(request, DescribeConfigsResponse)).results:
            entity = _find_entity(each)
            if each.error_code is ErrorCode.none:
                own = _find_own_source(entity)
                found[entity] = {said.name: said.value or "" for said in each.configs if said.config_source == own}
            elif each.error_code is not ErrorCode.unknown_topic_or_partition:
                refused.setdefault(entity, ConfigRefused(entity, each.error_code, each.error_message))
    if refusals is None:
        _raise_first(refused)
    return found


async def change_throttle_configs(
    client: ControllerClient, changes: Changes, *, refusals: Refusals | None = None, validate_only: bool = False
) -> None:
    """Request all changes, or only their validation. A topic that no longer exists needs none.

    One refused change does not hold up the others. After all of them `ConfigRefused` is raised for the first refused
    one, unless `refusals` collects them."""
    refused: Refusals = {} if refusals is None else refusals
    for part in _divide(changes.items()):
        resources = {_make_resource(entity): changed for entity, changed in part}
        request = make_alter_configs_request(resources, validate_only=validate_only)
        for each in (await client.ask(request, IncrementalAlterConfigsResponse)).responses:
            if each.error_code not in (ErrorCode.none, ErrorCode.unknown_topic_or_partition):
                entity = _find_entity(each)
                refused.setdefault(entity, ConfigRefused(entity, each.error_code, each.error_message))
    if refusals is None:
        _raise_first(refused)


def _raise_first(refused: Mapping[EntityPath, ConfigRefused]) -> None:
    for error in refused.values():
        raise error


def find_changes(
    entity: EntityPath, before: Mapping[str, str], after: Mapping[str, str], *, sets_missing_lists: bool = False
) -> list[ConfigChange]:
    """Return the next changes of a configuration; empty if it is as it should be. Raises `ListTooLongError`.

    `sets_missing_lists`: Kafka 2.8 appends to a missing list with a leading comma, and then cannot read the list. So a
    missing list is set, although somebody else may just do the same."""
    return [
        change
        for name in (*RATES, *LISTS)
        for change in _change(entity, name, before.get(name), after.get(name), sets_missing_lists=sets_missing_lists)
    ]


def _change(
    entity: EntityPath, name: str, old: str | None, new: str | None, *, sets_missing_lists: bool
) -> Iterator[ConfigChange]:
    """Yield the next change of a setting, unless it is as it should be."""
    if name in RATES:
        if new is not None and new != old:
            yield ConfigChange(name=name, operation=Operation.SET, value=new)
        elif new != old:
            yield ConfigChange(name=name, operation=Operation.DELETE)
        return
    present, wanted = _parse_list(old), _parse_list(new)
    missing = [item for item in wanted if item not in present]
    surplus = [item for item in present if item not in wanted]
    size = sum(len(item) + 1 for item in (*present, *missing)) - 1
    if missing and size <= LONGEST_VALUE:
        operation = Operation.SET if sets_missing_lists and not present else Operation.APPEND
        yield ConfigChange(name=name, operation=operation, value=",".join(missing))
    elif surplus:
        yield ConfigChange(name=name, operation=Operation.SUBTRACT, value=",".join(surplus))
    elif missing:
        raise ListTooLongError(
            f"{name} of {describe_entity(entity)} would have {size} characters, and Kafka takes {LONGEST_VALUE}: move "
            "fewer of its partitions at a time (maxConcurrentPartitions), or do without throttle"
        )
    elif new is None and old is not None:
        yield ConfigChange(name=name, operation=Operation.DELETE)


def _parse_list(value: str | None) -> dict[str, None]:
    return dict.fromkeys(item.strip() for item in value.split(",") if item.strip()) if value else {}


def _make_resource(entity: EntityPath) -> ConfigResource:
    kind, _, name = entity.partition("/")
    if entity == ALL_BROKERS:
        return BROKER_DEFAULTS
    return ConfigResource(ResourceType.BROKER, name) if kind == "brokers" else make_topic_resource(name)


def _find_entity(each: DescribeConfigsResult | AlterConfigsResourceResponse) -> EntityPath:
    if int(each.resource_type) == ResourceType.TOPIC:
        return topic_entity(TopicName(each.resource_name))
    return broker_entity(BrokerId(int(each.resource_name))) if each.resource_name else ALL_BROKERS


def _find_own_source(entity: EntityPath) -> int:
    """Return the source of values that are set in the configuration itself."""
    if entity == ALL_BROKERS:
        return _SOURCE_OF_DEFAULTS
    return _SOURCE_OF_BROKER if entity.startswith("brokers/") else _SOURCE_OF_TOPIC


def _divide(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    left = iter(items)
    while part := tuple(islice(left, MAX_ASKED)):
        yield part
