"""The messages that are declared here rather than generated, held against Kafka 3.9.1's own definitions and classes.

Needs Kafka's jars and a Java compiler, but no server.
"""

import base64
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args
from uuid import UUID

import pytest
from kio.serial import entity_writer
from kio.static.constants import EntityType

from controller_core.wire.codecs.decoding import decode_whole
from controller_core.wire.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from devcluster.building.java import kafka_home, tool_command

pytestmark = pytest.mark.real

MESSAGES: list[Any] = [
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
]
ALL_MESSAGES = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)


@cache
def definition(name: str) -> Any:
    """A message's definition as the jar has it: JSON with comments on lines of their own."""
    with zipfile.ZipFile(kafka_home() / "libs" / "kafka-clients-3.9.1.jar") as jar:
        text = jar.read(f"common/message/{name}.json").decode()
    return json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))


def covers(versions: str, version: int) -> bool:
    low, _, high = versions.partition("-")
    if low.endswith("+"):
        return version >= int(low[:-1])
    return low != "none" and int(low) <= version <= int(high or low)


def read_defined_fields(name: str, version: int) -> list[Any]:
    """Name, type, tag, nullability and default of a message's fields at a version; those of structs inside them."""
    root = definition(name)
    common = {struct["name"]: struct["fields"] for struct in root.get("commonStructs", [])}

    def describe(specification: Any) -> Any:
        kind = specification["type"].removeprefix("[]")
        inner = specification.get("fields") or common.get(kind)
        return (
            specification["name"].lower(),
            specification["type"] if inner is None else "[]",
            specification.get("tag") if covers(specification.get("taggedVersions", "none"), version) else None,
            covers(specification.get("nullableVersions", "none"), version),
            _default_of(specification.get("default")),
            None if inner is None else list_fields(inner),
        )

    def list_fields(specifications: list[Any]) -> list[Any]:
        return [describe(one) for one in specifications if covers(one["versions"], version)]

    return list_fields(root["fields"])


def _default_of(default: Any) -> Any:
    """Return the default, which may be JSON in a string. Kafka's defaults are zero and false if none is given."""
    return (json.loads(default) if isinstance(default, str) else default) or None


def read_declared_fields(entity_type: Any) -> list[Any]:
    """Return the same from Kontroller's declarations. A topic id that is None is Kafka's zero id, which is no null on
    the wire."""

    def describe(field: Any) -> Any:
        kafka_type = field.metadata.get("kafka_type")
        is_array = "tuple" in str(field.type)
        inner = next((kind for kind in get_args(field.type) if is_dataclass(kind)), None)
        default = (field.default or None) if isinstance(field.default, (bool, int)) else None
        return (
            field.name.replace("_", ""),
            ("[]" if is_array else "") + {"error_code": "int16", None: ""}.get(kafka_type, kafka_type),
            field.metadata.get("tag"),
            type(None) in get_args(field.type) and kafka_type != "uuid",
            default,
            None if inner is None else read_declared_fields(inner),
        )

    return [describe(field) for field in fields(entity_type)]


def classes_in(entity_type: Any) -> Iterator[Any]:
    yield entity_type
    for field in fields(entity_type):
        for kind in get_args(field.type):
            if is_dataclass(kind):
                yield from classes_in(kind)


@ALL_MESSAGES
def test_fields_are_those_of_kafkas_definition_in_its_order(message: Any) -> None:
    assert read_declared_fields(message) == read_defined_fields(message.__name__, message.__version__)


@ALL_MESSAGES
def test_key_version_and_flexibility_are_those_of_kafkas_definition(message: Any) -> None:
    root = definition(message.__name__)
    assert message.__type__ == EntityType[root["type"]]
    newest = int(root["validVersions"].partition("-")[2])
    for part in classes_in(message):
        assert (part.__api_key__, part.__version__) == (root["apiKey"], newest)
        assert part.__flexible__ == covers(root["flexibleVersions"], newest)
        assert part.__header_schema__.__version__ == (2 if root["type"] == "request" else 1)


NUMBERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def any_message(entity_type: Any, random: Random) -> Any:
    return entity_type(**{field.name: any_value(field, random) for field in fields(entity_type)})


def any_value(field: Any, random: Random) -> Any:
    inner = next((kind for kind in get_args(field.type) if is_dataclass(kind)), None)

    def one() -> Any:
        if inner is not None:
            return any_message(inner, random)
        match field.metadata["kafka_type"]:
            case "bool":
                return random.random() < 0.5
            case "string":
                return "".join(random.choices("abc-.7é漢😀", k=random.choice([0, 1, 5, 200])))
            case "uuid":
                return random.choice([None, UUID(int=random.getrandbits(128))])
            case "error_code":
                return random.choice(list(ErrorCode))
            case number:
                bits = NUMBERS[number]
                return random.choice([0, -1, 1, -(2**bits), 2**bits - 1, random.randrange(2**bits)])

    if "tuple" in str(field.type):
        return tuple(one() for _ in range(random.choice([0, 1, 3, 130 if inner is None else 2])))
    if type(None) in get_args(field.type) and random.random() < 0.3:
        return None
    return one()


def convert_to_json(entity: Any) -> Any:
    """The entity as Kafka's JSON converters show it, with names in lower case. Tagged defaults are left out."""
    shown = {}
    for field in fields(entity):
        value = getattr(entity, field.name)
        if "tag" not in field.metadata or value != field.default:
            shown[field.name.replace("_", "")] = convert_value(value, field)
    return shown


def convert_value(value: Any, field: Any) -> Any:
    if isinstance(value, tuple):
        return [convert_to_json(item) if is_dataclass(item) else item for item in value]
    if field.metadata["kafka_type"] == "uuid":
        content = bytes(16) if value is None else value.bytes
        return base64.urlsafe_b64encode(content).decode().rstrip("=")
    return value


def lower_names(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {name.lower(): lower_names(value) for name, value in shown.items()}
    return [lower_names(item) for item in shown] if isinstance(shown, list) else shown


def read_by_kafka(lines: list[str]) -> list[tuple[bytes, int, Any]]:
    source = Path(__file__).with_name("ReadMessages.java")
    done = subprocess.run(
        tool_command(str(source)), input="\n".join(lines), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = (line.split(" ", 2) for line in done.stdout.splitlines())
    return [(bytes.fromhex(content), int(left), lower_names(json.loads(shown))) for content, left, shown in answers]


def test_kafkas_own_classes_read_what_is_written_and_write_the_same_bytes() -> None:
    random = Random(20)
    entities = [any_message(kind, random) for kind in MESSAGES for _ in range(8)]
    lines, contents = [], []
    for entity in entities:
        buffer = io.BytesIO()
        entity_writer(type(entity))(buffer, entity)
        contents.append(buffer.getvalue())
        kind = type(entity)
        lines.append(f"{kind.__api_key__} {kind.__version__} {kind.__type__.name} {contents[-1].hex()}")
    read = read_by_kafka(lines)
    assert len(read) == len(entities)
    for entity, content, (written, left, shown) in zip(entities, contents, read, strict=True):
        assert left == 0
        assert shown == convert_to_json(entity)
        assert decode_whole(type(entity), written) == entity
        assert written == content
