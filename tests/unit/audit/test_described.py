"""Requests and answers in the words of the audit."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Union, get_args, get_origin
from uuid import UUID

import orjson
import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from controller_core.audit.described import CHANGES, HIDDEN, describe_end, describe_request
from controller_core.audit.record import (
    MORE,
    MOST_CHARACTERS,
    MOST_ENTRIES,
    MOST_RESOURCES,
    AuditRecord,
    Outcome,
    Resource,
    limit_resources,
)
from controller_core.model.access import Need
from controller_core.wire.api_table import REFUSED_API_KEYS, need_of
from simulation.checks import simulate_cluster

VERSIONS: Final = [
    (key, version)
    for key in sorted(CHANGES)
    for version, kinds in schema_name_map[api_key_map[key]].items()
    if EntityType.request in kinds
]
SECRET: Final = "hunter2"


def make(kind: Any, given: Mapping[str, Any] | None = None, *, text: str = "x") -> Any:
    """Return an example of a message: one item in each array, and these values for the fields of these names.

    `text`: the value of the other texts."""
    given = given or {}
    values = {field.name: given.get(field.name, _value(field.type, given, text)) for field in fields(kind)}
    return kind(**values)


def _value(kind: Any, given: Mapping[str, Any], text: str) -> Any:
    if get_origin(kind) in (types.UnionType, Union):
        kind = next(each for each in get_args(kind) if each is not types.NoneType)
    if get_origin(kind) is tuple:
        return (_value(get_args(kind)[0], given, text),)
    if is_dataclass(kind):
        return make(kind, given, text=text)
    if kind is UUID:
        return UUID(int=7)
    if kind is ErrorCode:
        return ErrorCode.none
    if issubclass(kind, timedelta):
        return kind(timedelta(0))
    if issubclass(kind, datetime):
        return datetime.fromtimestamp(0, UTC)
    if kind in (bytes, bool):
        return kind()
    return kind(text) if issubclass(kind, str) else kind(1.0) if issubclass(kind, float) else kind(1)


def ask(key: int, **given: Any) -> Any:
    newest = max(version for known, version in VERSIONS if known == key)
    return make(load_request_schema(key, newest), given)


def answer(key: int, version: int | None = None, **given: Any) -> Any:
    newest = max(number for known, number in VERSIONS if known == key)
    return make(load_response_schema(key, newest if version is None else version), given)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_version_of_each_change_is_described_with_its_error(key: int, version: int) -> None:
    resources = describe_request(make(load_request_schema(key, version)), None)
    assert resources
    done = describe_end(resources, answer(key, version))
    assert (done.outcome, done.error) == (Outcome.DONE, "")
    refused = describe_end(resources, answer(key, version, error_code=ErrorCode.cluster_authorization_failed))
    assert (refused.outcome, refused.error) == (Outcome.REFUSED, "CLUSTER_AUTHORIZATION_FAILED")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.topic_authorization_failed, Outcome.REFUSED),
        (ErrorCode.policy_violation, Outcome.REFUSED),
        (ErrorCode.throttling_quota_exceeded, Outcome.REFUSED),
        (ErrorCode.topic_already_exists, Outcome.FAILED),
    ],
)
def test_rights_rules_and_quotas_refuse_and_all_else_fails(code: ErrorCode, outcome: Outcome) -> None:
    assert describe_end(describe_request(ask(19), None), answer(19, error_code=code)).outcome is outcome


def test_each_api_that_an_administrator_needs_a_right_for_is_described() -> None:
    wanted = {key for key in api_key_map if need_of(key) in (Need.ADMINISTRATOR, Need.KEEPER_OF_CREDENTIALS)}
    assert wanted - REFUSED_API_KEYS <= CHANGES


@pytest.mark.parametrize(
    ("kind", "name", "is_shown"),
    [
        (2, "retention.ms", True),
        (2, "made.up", False),
        (4, "log.retention.ms", True),
        (4, "listener.name.x.ssl.keystore.password", False),
        (4, "sasl.jaas.config", False),
    ],
)
@pytest.mark.parametrize("api_key", [33, 44])
def test_values_that_may_be_secrets_are_hidden(api_key: int, kind: int, name: str, is_shown: bool) -> None:
    request = ask(api_key, resource_type=kind, name=name, value=SECRET, config_operation=0, resource_name="1")
    (resource,) = describe_request(request, None)
    assert resource.after == {"configs": {name: SECRET if is_shown else HIDDEN}}


@pytest.mark.parametrize("key", [38, 39, 40, 51])
def test_no_bytes_of_tokens_and_passwords_are_described(key: int) -> None:
    secret = SECRET.encode()
    described = describe_request(ask(key, hmac=secret, salt=secret, salted_password=secret), None)
    assert SECRET not in repr(described)


async def test_the_state_before_is_what_the_controller_knows() -> None:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2)
        topic_id = cluster.create_topic("orders", [1, 2], [2, 1])
        process = await cluster.serve()
        term = process.controller.term
        assert term is not None
        shape = {"partitions": 2, "replication_factor": 2}
        (grown,) = describe_request(ask(37, name="orders", count=5), term.state)
        assert (grown.before, grown.after) == (shape, {"partitions": 5})
        (deleted,) = describe_request(ask(20, name=None, topic_id=topic_id), term.state)
        assert (deleted.name, deleted.before) == ("orders", {"topic_id": str(topic_id), **shape})
        (moved,) = describe_request(ask(45, name="orders", partition_index=0, replicas=(2,)), term.state)
        assert (moved.before, moved.after["replicas"]) == ({"replicas": {"0": [1, 2]}}, {"0": [2]})


def test_a_request_that_is_carried_out_in_part_says_for_each_resource_what_was_wrong() -> None:
    resources = tuple(Resource(type="topic", name=name) for name in ("mine", "secret"))
    kind = type(answer(19).topics[0])
    good = make(kind, {"name": "mine"})
    bad = make(kind, {"name": "secret", "error_code": ErrorCode.topic_authorization_failed, "error_message": "no"})
    ended = describe_end(resources, answer(19, topics=(bad, good)))
    assert ended.outcome is Outcome.PARTLY_DONE
    assert [(each.name, each.error, each.message) for each in ended.resources] == [
        ("mine", "", ""),
        ("secret", "TOPIC_AUTHORIZATION_FAILED", "no"),
    ]


def test_a_record_names_a_limited_number_of_resources_and_counts_the_others() -> None:
    record = AuditRecord(time_ms=0, source="controller-9", api="DeleteTopics", outcome=Outcome.DONE)
    many = limit_resources(record, (Resource(type="topic", name=f"t{number}") for number in range(MOST_RESOURCES + 3)))
    assert (len(many.make_json()["resources"]), many.make_json()["more_resources"]) == (MOST_RESOURCES, 3)


LONG: Final = "\x01" * 30_000
"""A text of the greatest length that a request can have, whose characters JSON must escape."""


def list_strings(value: Any) -> list[str]:
    """Return the texts in JSON, with the names of mappings."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.items() for part in item for text in list_strings(part)]
        case list():
            return [text for each in value for text in list_strings(each)]
        case _:
            return []


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_all_texts_of_all_requests_are_cut(key: int, version: int) -> None:
    record = AuditRecord(time_ms=0, source="controller-9", api="x", outcome=Outcome.REFUSED)
    schema = load_request_schema(key, version)
    described = limit_resources(record, describe_request(make(schema, text=LONG), None)).make_json()
    assert all(len(text) <= MOST_CHARACTERS for text in list_strings(described))


def test_a_record_has_room_in_the_topic_of_the_journal_however_much_is_asked_for() -> None:
    record = AuditRecord(time_ms=0, source="controller-9", api="x", outcome=Outcome.REFUSED)
    request = ask(19)
    (topic,) = request.topics
    (config,) = topic.configs
    configs = tuple(replace(config, name=f"{number}{LONG}", value=LONG) for number in range(MOST_ENTRIES + 5))
    topics = tuple(replace(topic, name=f"{number}{LONG}", configs=configs) for number in range(MOST_RESOURCES + 1))
    resources = describe_request(replace(request, topics=topics), None)
    answered = [replace(each, message=LONG) for each in resources]
    described = limit_resources(record, answered).make_json()
    assert len(orjson.dumps(described)) < 700_000
    assert (len(described["resources"]), described["more_resources"]) == (MOST_RESOURCES, 1)
    first, *_, last = described["resources"]
    assert (len(first["after"]["configs"]), first["after"]["configs"][MORE]) == (MOST_ENTRIES + 1, 5)
    assert "after" not in last
    assert last["name"].startswith("99")


def test_texts_of_strangers_are_cut_and_empty_fields_left_out() -> None:
    record = AuditRecord(
        time_ms=1_700_000_000_123, source="controller-9", api="x", outcome=Outcome.FAILED, client_id="c" * 9_000
    )
    assert len(record.make_json()["client_id"]) <= 250
    assert record.make_json().keys() == {"time", "source", "api", "outcome", "client_id"}
    assert record.make_json()["time"] == "2023-11-14T22:13:20.123Z"
