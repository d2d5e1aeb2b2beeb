"""Describes requests and their answers for the audit: the resources, their state before and after, and the errors.

Messages of all versions are read by the names of their fields, which Kafka keeps. Values of configurations are shown if
they are known not to be secrets; keys of tokens, passwords and salts never are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, TypeAlias

from kio.schema.errors import ErrorCode

from controller_core.audit.record import Outcome, Resource
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.configs import BROKER_CONFIGS
from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS

HIDDEN: Final = "<not shown>"
"""In place of a value that may be a secret."""
_MOST_PARTITIONS: Final = 20
"""Partitions of a topic whose replicas are named."""
_TOPIC, _BROKER = 2, 4
_CONFIG_RESOURCES: Final = {
    _TOPIC: "topic", _BROKER: "broker", 8: "broker logger", 16: "client metrics", 32: "group",
}  # fmt: skip
_ACL_RESOURCES: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token", 7: "user"}
_OPERATIONS: Final = {0: "set", 1: "delete", 2: "append", 3: "subtract"}
_REFUSALS: Final = frozenset({
    ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed, ErrorCode.group_authorization_failed,
    ErrorCode.transactional_id_authorization_failed, ErrorCode.delegation_token_authorization_failed,
    ErrorCode.policy_violation, ErrorCode.throttling_quota_exceeded,
})  # fmt: skip
_NAMES: Final = ("name", "topic_name", "topic", "resource_name", "user", "group_id", "feature")
"""The fields that name the resource of an error."""

State: TypeAlias = ClusterState | None
"""The cluster as it is known before the request; None if this process is not the controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a request, with its resources and their errors."""

    outcome: Outcome
    resources: tuple[Resource, ...]
    error: str = ""
    message: str = ""
    code: ErrorCode = ErrorCode.none


def describe_request(request: Any, state: State) -> tuple[Resource, ...]:
    """Return the resources of a request. An unknown API has none."""
    describe = _DESCRIBED.get(request.__api_key__)
    return () if describe is None else tuple(describe(request, state))


def describe_end(resources: tuple[Resource, ...], response: Any) -> Ended:
    """Return the end of a request about these resources, from the errors in its response."""
    errors = list(_walk(response, None))
    parts = [each for each in errors if each.name is not None] or [each for each in errors if not each.is_whole]
    by_name = {part.name: part for part in reversed(parts) if part.name is not None}
    by_name |= {part.name: part for part in reversed(parts) if part.name is not None and part.is_error}
    in_order = parts if len(parts) == len(resources) else [None] * len(resources)
    described = tuple(
        _add_error(resource, by_name.get(resource.name) or other)
        for resource, other in zip(resources, in_order, strict=True)
    )
    failed = [each for each in errors if each.is_error]
    if not failed:
        return Ended(outcome=Outcome.DONE, resources=described)
    first = failed[0]
    if any(not part.is_error for part in parts):
        outcome = Outcome.PARTLY_DONE
    else:
        outcome = Outcome.REFUSED if first.code in _REFUSALS else Outcome.FAILED
    return Ended(
        outcome=outcome, resources=described, error=first.code.name.upper(), message=first.message, code=first.code
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    name: str | None
    code: ErrorCode
    message: str
    is_whole: bool
    """True for the error of the whole request."""

    @property
    def is_error(self) -> bool:
        return self.code is not ErrorCode.none


def _walk(message: Any, name: str | None, *, is_whole: bool = True) -> Iterator[_Error]:
    """Yield the errors of a response, each with the name of its resource, which may be that of the outer one."""
    own = next((str(found) for each in _NAMES if (found := getattr(message, each, None)) is not None), None)
    if own is None and (topic_id := getattr(message, "topic_id", None)) is not None:
        own = str(topic_id)
    name = own if own is not None else name
    code = getattr(message, "error_code", None)
    if isinstance(code, ErrorCode):
        text = getattr(message, "error_message", None) or ""
        yield _Error(name=name, code=code, message=text, is_whole=is_whole)
    for part in fields(message):
        value = getattr(message, part.name)
        for each in value if isinstance(value, tuple) else ():
            if is_dataclass(each):
                yield from _walk(each, name, is_whole=False)


def _add_error(resource: Resource, error: _Error | None) -> Resource:
    if error is None or not error.is_error:
        return resource
    return replace(resource, error=error.code.name.upper(), message=error.message)


# Requests


def _create_topics(request: Any, _: State) -> Iterator[Resource]:
    for topic in request.topics:
        assigned = topic.assignments
        after = {
            "partitions": len(assigned) or topic.num_partitions,
            "replication_factor": len(assigned[0].broker_ids) if assigned else topic.replication_factor,
        }
        configs = {each.name: _show(_TOPIC, each.name, each.value) for each in topic.configs}
        yield Resource(type="topic", name=topic.name, after=after | ({"configs": configs} if configs else {}))


def _delete_topics(request: Any, state: State) -> Iterator[Resource]:
    for name in getattr(request, "topic_names", ()):
        yield Resource(type="topic", name=name, before=_shape(state, name))
    for topic in getattr(request, "topics", ()):
        name, topic_id = topic.name, topic.topic_id
        if name is None and state is not None:
            name = state.find_topic_name(topic_id)
        by_id = {} if topic_id is None else {"topic_id": str(topic_id)}
        yield Resource(type="topic", name=str(name or topic_id), before=by_id | _shape(state, name))


def _create_partitions(request: Any, state: State) -> Iterator[Resource]:
    for topic in request.topics:
        yield Resource(
            type="topic", name=topic.name, before=_shape(state, topic.name), after={"partitions": topic.count}
        )


def _alter_configs(request: Any, state: State) -> Iterator[Resource]:
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        present = _configs(state, kind, name)
        after = {each.name: _describe_operation(kind, each) for each in resource.configs}
        before = {each.name: present.get(each.name) for each in resource.configs} if present is not None else {}
        yield Resource(
            type=_CONFIG_RESOURCES.get(kind, str(kind)),
            name=name,
            before={"configs": _visible(before)} if _visible(before) else {},
            after={"configs": after},
        )


def _describe_operation(kind: int, config: Any) -> str | None:
    operation = _OPERATIONS.get(getattr(config, "config_operation", 0), "?")
    if operation == "delete":
        return None
    value = _show(kind, config.name, config.value)
    return value if operation == "set" else f"{operation} {value}"


def _reassign(request: Any, state: State) -> Iterator[Resource]:
    for topic in request.topics:
        wanted = {
            str(each.partition_index): None if each.replicas is None else list(each.replicas)
            for each in topic.partitions[:_MOST_PARTITIONS]
        }
        known = _partitions(state, topic.name)
        before = {number: list(known[PartitionId(int(number))].replicas) for number in wanted if int(number) in known}
        yield Resource(
            type="topic",
            name=topic.name,
            before={"replicas": before} if before else {},
            after={"replicas": wanted, "partitions": len(topic.partitions)},
        )


def _elect(request: Any, _: State) -> Iterator[Resource]:
    kind = "unclean" if getattr(request, "election_type", 0) == 1 else "preferred"
    for topic in request.topic_partitions or ():
        after = {"election": kind, "partitions": list(topic.partitions[:_MOST_PARTITIONS])}
        yield Resource(type="topic", name=topic.topic, after=after)
    if request.topic_partitions is None:
        yield Resource(type="cluster", name="", after={"election": kind})


def _update_features(request: Any, state: State) -> Iterator[Resource]:
    finalized = state.finalized_features if state is not None else None
    for update in request.feature_updates:
        level = finalized.features.get(update.feature) if finalized is not None else None
        before = {"level": level} if level is not None else {}
        yield Resource(type="feature", name=update.feature, before=before, after={"level": update.max_version_level})


def _alter_scram(request: Any, _: State) -> Iterator[Resource]:
    for deletion in request.deletions:
        yield Resource(type="user", name=deletion.name, after={"mechanism": deletion.mechanism, "deleted": True})
    for upsertion in request.upsertions:
        yield Resource(type="user", name=upsertion.name, after={"mechanism": upsertion.mechanism})


def _delete_records(request: Any, _: State) -> Iterator[Resource]:
    for topic in request.topics:
        offsets = {str(each.partition_index): each.offset for each in topic.partitions[:_MOST_PARTITIONS]}
        yield Resource(type="topic", name=topic.name, after={"before_offset": offsets})


def _create_acls(request: Any, _: State) -> Iterator[Resource]:
    for acl in request.creations:
        yield Resource(
            type=f"acl of {_ACL_RESOURCES.get(acl.resource_type, acl.resource_type)}",
            name=acl.resource_name,
            after=_acl(acl) | {"pattern_type": acl.resource_pattern_type},
        )


def _delete_acls(request: Any, _: State) -> Iterator[Resource]:
    for acl in request.filters:
        yield Resource(
            type=f"acl of {_ACL_RESOURCES.get(acl.resource_type_filter, acl.resource_type_filter)}",
            name=acl.resource_name_filter or "",
            before={
                "principal": acl.principal_filter,
                "host": acl.host_filter,
                "operation": acl.operation,
                "permission_type": acl.permission_type,
                "pattern_type": acl.pattern_type_filter,
            },
        )


def _acl(acl: Any) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }


def _alter_log_dirs(request: Any, _: State) -> Iterator[Resource]:
    for directory in request.dirs:
        for topic in directory.topics:
            after = {"directory": directory.path, "partitions": list(topic.partitions[:_MOST_PARTITIONS])}
            yield Resource(type="topic", name=getattr(topic, "name", ""), after=after)


def _create_token(request: Any, _: State) -> Iterator[Resource]:
    owner = getattr(request, "owner_principal_name", None) or ""
    yield Resource(type="delegation token", name=owner)


def _token(_request: Any, _: State) -> Iterator[Resource]:
    yield Resource(type="delegation token", name="")


def _delete_groups(request: Any, _: State) -> Iterator[Resource]:
    for group in request.groups_names:
        yield Resource(type="group", name=group)


def _delete_offsets(request: Any, _: State) -> Iterator[Resource]:
    topics = [str(topic.name) for topic in request.topics]
    yield Resource(type="group", name=request.group_id, after={"offsets_deleted": topics})


def _alter_quotas(request: Any, _: State) -> Iterator[Resource]:
    for entry in request.entries:
        name = ", ".join(f"{each.entity_type}={each.entity_name or '<default>'}" for each in entry.entity)
        yield Resource(
            type="client quota", name=name, after={each.key: None if each.remove else each.value for each in entry.ops}
        )


_DESCRIBED: Final[Mapping[int, Callable[[Any, State], Iterator[Resource]]]] = {
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    30: _create_acls,
    31: _delete_acls,
    33: _alter_configs,
    34: _alter_log_dirs,
    37: _create_partitions,
    38: _create_token,
    39: _token,
    40: _token,
    42: _delete_groups,
    43: _elect,
    44: _alter_configs,
    45: _reassign,
    47: _delete_offsets,
    49: _alter_quotas,
    51: _alter_scram,
    57: _update_features,
}
CHANGES: Final = frozenset(_DESCRIBED)
"""The keys of the APIs by which clients change something."""


def _partitions(state: State, name: Any) -> Mapping[PartitionId, ReplicaAssignment]:
    topic = state.topics.get(TopicName(name)) if state is not None and name is not None else None
    return {} if topic is None else topic.partitions


def _shape(state: State, name: Any) -> dict[str, Any]:
    """Return the number of partitions and replicas of a topic, or nothing if it is not known."""
    partitions = _partitions(state, name)
    if not partitions:
        return {}
    replicas = max(len(assignment.replicas) for assignment in partitions.values())
    return {"partitions": len(partitions), "replication_factor": replicas}


def _configs(state: State, kind: int, name: str) -> Mapping[str, str] | None:
    """Return the known configuration of a topic or broker. The state has only what the journal records of it."""
    if state is None:
        return None
    if kind == _TOPIC:
        return state.topic_configs.get(TopicName(name))
    if kind == _BROKER and (name == "" or name.isdecimal()):
        return state.broker_configs.get(BrokerId(int(name)) if name else None)
    return None


def _visible(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def is_plain_topic_config(name: str) -> bool:
    """Return True if the value of a topic's configuration is no secret: Kafka knows the name."""
    return name in TOPIC_CONFIGS


def _show(kind: int, name: str, value: str | None) -> str | None:
    """Return a value unless it may be a secret. Brokers' configurations have passwords; other names may be anything."""
    is_plain = is_plain_topic_config(name) if kind == _TOPIC else name in BROKER_CONFIGS
    return value if is_plain or value is None else HIDDEN
