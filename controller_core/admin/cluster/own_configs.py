"""The controller's own dynamic configuration, in the form of a broker's.

Tools take the controller for a broker: they describe and alter the configuration of every node in Metadata, each at
that node. No broker answers for another node, so the controller answers for itself. One configuration has an effect.
Rates of throttles have none and are kept, because tools such as Cruise Control set them on all nodes, read them back,
and remove them. Throttles of moves that the controller owns are kept elsewhere (`owned_throttles`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as ReplacingResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as ReplacingResult
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.static.primitive import i8

from controller_core.admin.cluster import owned_throttles
from controller_core.admin.refusals import ItemRefused
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.config_writes import ensure_paths, notify, open_throttles, write_config
from controller_core.controller.znodes.topic_configs import UNCLEAN_LEADER_ELECTION
from controller_core.model.ids import BrokerId
from controller_core.model.throttles import RATES, THROTTLE_SETTING, Throttle
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import compare_and_set
from controller_core.zk.session import WriteOp, ZkNode

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
LOGGER_RESOURCE: Final = 8
_SET, _DELETE = 0, 1
_DYNAMIC, _STATIC = i8(2), i8(4)
_UNKNOWN, _BOOLEAN, _LONG = i8(0), i8(1), i8(5)
_LARGEST: Final = 2**63 - 1
_KEPT: Final = (*RATES, "replica.alter.log.dirs.io.max.bytes.per.second")
"""Configurations that are kept for tools, and have no effect. Like a broker's, they are described only if they are
set."""
_RATE: Final = re.compile(r"\+?[0-9]{1,19}")
_FOREIGN: Final = "the controller answers only for its own configuration: send a separate request for the others"

AnyRequest: TypeAlias = IncrementalAlterConfigsRequest | AlterConfigsRequest | DescribeConfigsRequest
AlteredResource: TypeAlias = AlterConfigsResource | ReplacingResource
Change: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Returns the new configuration for the present one."""
Result = TypeVar("Result", AlterConfigsResourceResponse, ReplacingResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig:
    """The controller's configuration as read."""

    node: ZkNode | None
    config: Mapping[str, str]
    owners: tuple[str, ...] = ()
    """The owners of throttles, if somebody asks for them."""


def is_about(request: AnyRequest, own_id: BrokerId) -> bool:
    """Return True if a part of the request concerns the controller itself. Other requests are for brokers."""
    return any(_is_own(resource, own_id) for resource in request.resources)


def is_about_topics(request: AnyRequest) -> bool:
    """Return True if the request concerns only topics."""
    return all(resource.resource_type == TOPIC_RESOURCE for resource in request.resources)


async def on_alter(term: Term, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Alter the controller's own configuration. Other resources of the same request are refused.

    Like a broker, refuse the own configuration if it appears twice.
    """
    refused = await _alter_each(term, request, _plan_alteration)
    responses = _make_results(AlterConfigsResourceResponse, request.resources, refused)
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=responses)


async def on_replace(term: Term, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the controller's own configuration, for clients that do not know IncrementalAlterConfigs. See
    `on_alter`."""
    refused = await _alter_each(term, request, _plan_replacement)
    responses = _make_results(ReplacingResult, request.resources, refused)
    return AlterConfigsResponse(throttle_time=NO_THROTTLE, responses=responses)


async def on_describe(term: Term, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the controller's configuration: its dynamic one, and the settings in brokers' files that hold here."""
    found = await _read_or_refused(term)
    if isinstance(found, OwnConfig) and any(_is_asked_for_throttles(each) for each in request.resources):
        found = replace(found, owners=tuple(sorted(await open_throttles(term).read())))
    static = {UNCLEAN_LEADER_ELECTION: "false", **term.cluster_settings.values}
    results = tuple(
        _describe(term, each, found, static, with_sources=request.include_synonyms) for each in request.resources
    )
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=results)


def refusal(request: IncrementalAlterConfigsRequest, error_code: ErrorCode) -> IncrementalAlterConfigsResponse:
    """Return the answer that refuses every resource of the request."""
    refused = dict.fromkeys(range(len(request.resources)), ItemRefused(error_code))
    responses = _make_results(AlterConfigsResourceResponse, request.resources, refused)
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=responses)


def _refuse_replacement(request: AlterConfigsRequest, error_code: ErrorCode) -> AlterConfigsResponse:
    refused = dict.fromkeys(range(len(request.resources)), ItemRefused(error_code))
    responses = _make_results(ReplacingResult, request.resources, refused)
    return AlterConfigsResponse(throttle_time=NO_THROTTLE, responses=responses)


def _refuse_describe(request: DescribeConfigsRequest, error_code: ErrorCode) -> DescribeConfigsResponse:
    results = tuple(_make_describe_result(resource, error_code, None) for resource in request.resources)
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=results)


# Altering


async def _alter_each(
    term: Term, request: IncrementalAlterConfigsRequest | AlterConfigsRequest, plan: Callable[[Any], Change]
) -> dict[int, ItemRefused]:
    """Alter the own configuration by a plan. Return the refused resources by position."""
    own = term.identity.id
    resources: Sequence[AlteredResource] = request.resources
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    async def alter(resource: AlteredResource) -> None:
        if not _is_own(resource, own):
            raise ItemRefused(ErrorCode.invalid_request, _FOREIGN)
        if named[resource.resource_type, resource.resource_name] > 1:
            raise ItemRefused(ErrorCode.invalid_request, "Each resource must appear at most once.")
        if resource.resource_type == LOGGER_RESOURCE:
            message = f"{own} is the controller, which has no loggers of Kafka: set its --log-level"
            raise ItemRefused(ErrorCode.invalid_config, message)
        change, throttles = plan(resource), _find_throttles(resource)
        if request.validate_only:
            return
        for setting, throttle in throttles.items():
            await owned_throttles.set_throttle(term, setting, throttle)
        await _write(term, change)

    refused: dict[int, ItemRefused] = {}
    for at, resource in enumerate(resources):
        try:
            await alter(resource)
        except ItemRefused as error:
            refused[at] = error
    return refused


def _plan_alteration(resource: AlterConfigsResource) -> Change:
    """Return the change of an IncrementalAlterConfigs. Raises `ItemRefused`."""
    _require_distinct(config.name for config in resource.configs)
    for config in resource.configs:
        _check_operation(config)
    own = [config for config in resource.configs if not owned_throttles.is_throttle(config.name)]
    changes = {config.name: config.value for config in own if config.config_operation == _SET}
    deleted = {config.name for config in own if config.config_operation == _DELETE}

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        kept = {name: value for name, value in present.items() if name not in deleted}
        return kept | {name: value for name, value in changes.items() if value is not None}

    return change


def _find_throttles(resource: AlteredResource) -> Mapping[str, Throttle | None]:
    """Return the throttles that an IncrementalAlterConfigs sets, by setting; None for those that it ends.

    Raises `ItemRefused`. An AlterConfigs replaces the configuration alone."""
    if not isinstance(resource, AlterConfigsResource):
        return {}
    return {
        config.name: owned_throttles.parse_throttle(config.name, config.value)
        if config.config_operation == _SET and config.value is not None
        else None
        for config in resource.configs
        if owned_throttles.is_throttle(config.name)
    }


def _plan_replacement(resource: ReplacingResource) -> Change:
    """Return the change of an AlterConfigs. Raises `ItemRefused`."""
    _require_distinct(config.name for config in resource.configs)
    for config in resource.configs:
        _check_value(config.name, config.value)
    wanted = {config.name: config.value for config in resource.configs if config.value is not None}
    return lambda _: wanted


def _require_distinct(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise ItemRefused(ErrorCode.invalid_request, "Error due to duplicate config keys")


def _check_operation(config: AlterableConfig) -> None:
    if config.config_operation == _DELETE:
        return  # deleting a missing setting is allowed
    if config.config_operation != _SET:
        raise ItemRefused(ErrorCode.invalid_request, f"{config.name} is not a list: use SET or DELETE")
    if owned_throttles.is_throttle(config.name) and config.value is not None:
        return
    _check_value(config.name, config.value)


def _check_value(name: str, value: str | None) -> None:
    if value is None:
        raise ItemRefused(ErrorCode.invalid_request, f"Null value not supported for : {name}")
    if name in _KEPT:
        if not _RATE.fullmatch(value.strip()) or int(value) > _LARGEST:
            raise ItemRefused(ErrorCode.invalid_config, f"{name} must be a number of bytes per second, not {value!r}")
    elif name != UNCLEAN_LEADER_ELECTION:
        message = (
            f"{name} is not a setting of the controller, which has {UNCLEAN_LEADER_ELECTION} and rates of throttles"
        )
        raise ItemRefused(ErrorCode.invalid_config, message)
    elif value.strip().lower() not in ("true", "false"):
        raise ItemRefused(ErrorCode.invalid_config, f"{name} must be true or false, not {value!r}")


async def _write(term: Writes, change: Change) -> None:
    """Write the changed configuration unless nothing changes. Raises `ItemRefused`."""
    path = paths.broker_config(term.identity.id)
    await ensure_paths(term, [paths.CONFIG, paths.BROKER_CONFIGS, paths.CONFIG_CHANGES])

    def plan_write(present: OwnConfig) -> list[WriteOp]:
        wanted = change(present.config)
        if wanted == present.config:
            return []
        ops = [write_config(path, wanted, present.node), notify(f"brokers/{term.identity.id}")]
        if why_too_large := term.writer.why_too_large(ops):
            raise ItemRefused(ErrorCode.invalid_config, f"The configuration does not fit into a znode: {why_too_large}")
        return ops

    await compare_and_set(partial(_read, term), plan_write, term.writer.transact)


# Describing


def _describe(
    term: Term,
    resource: DescribeConfigsResource,
    found: OwnConfig | ItemRefused,
    static: Mapping[str, str],
    *,
    with_sources: bool,
) -> DescribeConfigsResult:
    if not _is_own(resource, term.identity.id):
        return _make_describe_result(resource, ErrorCode.invalid_request, _FOREIGN)
    if resource.resource_type == LOGGER_RESOURCE:
        return _make_describe_result(resource, ErrorCode.none, None)
    if isinstance(found, ItemRefused):
        return _make_describe_result(resource, found.error_code, found.message)
    config = found.config
    if _is_asked_for_throttles(resource):
        static = {**static, THROTTLE_SETTING: ",".join(found.owners)}
    values = {**static, **config}
    entries = tuple(
        DescribeConfigsResourceResult(
            name=name,
            value=values[name],
            read_only=name not in (UNCLEAN_LEADER_ELECTION, *_KEPT),
            config_source=_DYNAMIC if name in config else _STATIC,
            is_sensitive=False,
            synonyms=tuple(_list_sources(name, config, static)) if with_sources else (),
            config_type=_find_type(name),
            documentation=None,
        )
        for name in values
        if not resource.configuration_keys or name in resource.configuration_keys
    )
    return _make_describe_result(resource, ErrorCode.none, None, entries)


def _is_asked_for_throttles(resource: DescribeConfigsResource) -> bool:
    """Return True if the owners of throttles are asked for by name. Tools that describe everything do not need them."""
    return THROTTLE_SETTING in (resource.configuration_keys or ())


def _find_type(name: str) -> i8:
    if name in _KEPT:
        return _LONG
    return _BOOLEAN if name == UNCLEAN_LEADER_ELECTION else _UNKNOWN


def _list_sources(name: str, config: Mapping[str, str], static: Mapping[str, str]) -> Iterator[DescribeConfigsSynonym]:
    """Yield each source of a value, the one that counts first, as a broker does."""
    for source, values in ((_DYNAMIC, config), (_STATIC, static)):
        if name in values:
            yield DescribeConfigsSynonym(name=name, value=values[name], source=source)


async def _read_or_refused(term: Reads) -> OwnConfig | ItemRefused:
    """Read the configuration once per request. No other event is handled during the request, so it cannot change."""
    try:
        return await _read(term)
    except ItemRefused as refused:
        return refused


async def _read(term: Reads) -> OwnConfig:
    path = paths.broker_config(term.identity.id)
    (node,) = await term.zk.read_many([path])
    try:
        return OwnConfig(node=node, config=codecs.decode_config(node.data, path) if node else {})
    except MalformedZnode as error:
        raise ItemRefused(ErrorCode.unknown_server_error, str(error)) from error


def _is_own(resource: AlteredResource | DescribeConfigsResource, own_id: BrokerId) -> bool:
    return resource.resource_type in (BROKER_RESOURCE, LOGGER_RESOURCE) and resource.resource_name == str(own_id)


# Results


def _make_results(
    kind: type[Result], resources: Iterable[AlteredResource], refused: Mapping[int, ItemRefused]
) -> tuple[Result, ...]:
    """Return a result for each resource. `refused` has the refused ones by position."""
    return tuple(
        kind(
            error_code=refused[at].error_code if at in refused else ErrorCode.none,
            error_message=refused[at].message if at in refused else None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for at, resource in enumerate(resources)
    )


def _make_describe_result(
    resource: DescribeConfigsResource,
    code: ErrorCode,
    message: str | None,
    entries: tuple[DescribeConfigsResourceResult, ...] = (),
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=entries,
    )


ALTER: Final = ServedApi(versions=Versions(IncrementalAlterConfigsRequest, oldest=0), answer=on_alter, refuse=refusal)
REPLACE: Final = ServedApi(
    versions=Versions(AlterConfigsRequest, oldest=0), answer=on_replace, refuse=_refuse_replacement
)
DESCRIBE: Final = ServedApi(
    versions=Versions(DescribeConfigsRequest, oldest=1), answer=on_describe, refuse=_refuse_describe
)
