"""The controller's own dynamic configuration, in the form of a broker's.

Tools take the controller for a broker: they describe and alter the configuration of every node in Metadata, each at
that node. For example, kafka-reassign-partitions removes its throttles from all nodes. No broker answers for another
node, so the controller answers for itself. It has one dynamic configuration, and never any throttle.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
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

from controller_core.admin.refusals import Refused
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.config_writes import ensure_paths, notify, write_config
from controller_core.controller.znodes.topic_configs import UNCLEAN_LEADER_ELECTION
from controller_core.model.ids import BrokerId
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import compare_and_set
from controller_core.zk.session import WriteOp, ZkNode

ALTER_VERSIONS: Final = Versions(IncrementalAlterConfigsRequest, oldest=0)
DESCRIBE_VERSIONS: Final = Versions(DescribeConfigsRequest, oldest=1)

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
_SET, _DELETE = 0, 1
_DYNAMIC, _STATIC = i8(2), i8(4)
_BOOLEAN: Final = i8(1)
_FOREIGN: Final = "the controller answers only for its own configuration: send a separate request for the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig:
    """The controller's configuration as read."""

    node: ZkNode | None
    config: Mapping[str, str]


def is_about(request: IncrementalAlterConfigsRequest | DescribeConfigsRequest, own_id: BrokerId) -> bool:
    """Return True if a part of the request concerns the controller itself. Other requests are for brokers."""
    return any(_is_own(resource, own_id) for resource in request.resources)


def is_about_topics(request: IncrementalAlterConfigsRequest | DescribeConfigsRequest) -> bool:
    """Return True if the request concerns only topics."""
    return all(resource.resource_type == TOPIC_RESOURCE for resource in request.resources)


async def on_alter(term: Term, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Alter the controller's own configuration. Other resources of the same request are refused.

    Like a broker, refuse the own configuration if it appears twice.
    """
    is_twice = sum(_is_own(resource, term.identity.id) for resource in request.resources) > 1
    responses = []
    for resource in request.resources:
        try:
            if not _is_own(resource, term.identity.id):
                raise Refused(ErrorCode.invalid_request, _FOREIGN)  # noqa: TRY301
            if is_twice:
                raise Refused(ErrorCode.invalid_request, "Each resource must appear at most once.")  # noqa: TRY301
            await _alter(term, resource, validate_only=request.validate_only)
        except Refused as refused:
            responses.append(_make_alter_result(resource, refused.error_code, refused.message))
        else:
            responses.append(_make_alter_result(resource, ErrorCode.none, None))
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=tuple(responses))


def refusal(request: IncrementalAlterConfigsRequest, error_code: ErrorCode) -> IncrementalAlterConfigsResponse:
    """Return the answer that refuses every resource of the request."""
    responses = tuple(_make_alter_result(resource, error_code, None) for resource in request.resources)
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=responses)


async def on_describe(term: Term, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the controller's configuration. Each value is either set dynamically or the default of the process."""
    found = await _read_or_refused(term)
    results = tuple(_describe(term, resource, found) for resource in request.resources)
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=results)


async def _alter(term: Term, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    names = Counter(config.name for config in resource.configs)
    if any(count > 1 for count in names.values()):
        raise Refused(ErrorCode.invalid_request, "Error due to duplicate config keys")
    for config in resource.configs:
        _check(config)
    changes = {config.name: config.value for config in resource.configs if config.config_operation == _SET}
    deleted = {config.name for config in resource.configs if config.config_operation == _DELETE}
    if validate_only:
        return
    path = paths.broker_config(term.identity.id)
    await ensure_paths(term, [paths.CONFIG, paths.BROKER_CONFIGS, paths.CONFIG_CHANGES])

    def plan_write(present: OwnConfig) -> list[WriteOp]:
        wanted = {name: value for name, value in present.config.items() if name not in deleted}
        wanted |= {name: value for name, value in changes.items() if value is not None}
        if wanted == present.config:
            return []
        ops = [write_config(path, wanted, present.node), notify(f"brokers/{term.identity.id}")]
        if why_too_large := term.writer.why_too_large(ops):
            raise Refused(ErrorCode.invalid_config, f"The configuration does not fit into a znode: {why_too_large}")
        return ops

    await compare_and_set(partial(_read, term), plan_write, term.writer.transact)


def _check(config: AlterableConfig) -> None:
    if config.config_operation == _DELETE:
        return  # deleting a missing setting is allowed
    if config.config_operation != _SET:
        raise Refused(ErrorCode.invalid_request, f"{config.name} is not a list: use SET or DELETE")
    if config.value is None:
        raise Refused(ErrorCode.invalid_request, f"Null value not supported for : {config.name}")
    if config.name != UNCLEAN_LEADER_ELECTION:
        message = f"{config.name} is not a setting of the controller, which has only {UNCLEAN_LEADER_ELECTION}"
        raise Refused(ErrorCode.invalid_config, message)
    if config.value.strip().lower() not in ("true", "false"):
        raise Refused(ErrorCode.invalid_config, f"{config.name} must be true or false, not {config.value!r}")


def _describe(term: Term, resource: DescribeConfigsResource, found: OwnConfig | Refused) -> DescribeConfigsResult:
    if not _is_own(resource, term.identity.id):
        return _make_describe_result(resource, ErrorCode.invalid_request, _FOREIGN)
    if isinstance(found, Refused):
        return _make_describe_result(resource, found.error_code, found.message)
    config = found.config
    default = str(term.settings.unclean_leader_election_enable).lower()
    values = {UNCLEAN_LEADER_ELECTION: default, **config}
    wanted = [name for name in values if not resource.configuration_keys or name in resource.configuration_keys]
    entries = tuple(
        DescribeConfigsResourceResult(
            name=name,
            value=values[name],
            read_only=name != UNCLEAN_LEADER_ELECTION,
            config_source=_DYNAMIC if name in config else _STATIC,
            is_sensitive=False,
            synonyms=(),
            config_type=_BOOLEAN if name == UNCLEAN_LEADER_ELECTION else i8(0),
            documentation=None,
        )
        for name in wanted
    )
    return _make_describe_result(resource, ErrorCode.none, None, entries)


async def _read_or_refused(term: Term) -> OwnConfig | Refused:
    """Read the configuration once per request. No other event is handled during the request, so it cannot change."""
    try:
        return await _read(term)
    except Refused as refused:
        return refused


async def _read(term: Term) -> OwnConfig:
    path = paths.broker_config(term.identity.id)
    (node,) = await term.zk.read_many([path])
    try:
        return OwnConfig(node=node, config=codecs.decode_config(node.data, path) if node else {})
    except MalformedZnode as error:
        raise Refused(ErrorCode.unknown_server_error, str(error)) from error


def _is_own(resource: AlterConfigsResource | DescribeConfigsResource, own_id: BrokerId) -> bool:
    return resource.resource_type == BROKER_RESOURCE and resource.resource_name == str(own_id)


def _make_alter_result(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
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


def _refuse_describe(request: DescribeConfigsRequest, error_code: ErrorCode) -> DescribeConfigsResponse:
    results = tuple(_make_describe_result(resource, error_code, None) for resource in request.resources)
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=results)


ALTER: Final = ServedApi(versions=ALTER_VERSIONS, answer=on_alter, refuse=refusal)
DESCRIBE: Final = ServedApi(versions=DESCRIBE_VERSIONS, answer=on_describe, refuse=_refuse_describe)
