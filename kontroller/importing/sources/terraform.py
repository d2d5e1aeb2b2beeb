"""Topics in the state of Terraform (`terraform.tfstate`, `terraform state pull`), of the providers Mongey/kafka and
confluentinc/confluent. Only fields of topics are read, because a state has secrets."""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from kontroller.importing.declared import Declared
from kontroller.importing.sources.loading import Fields, Misshapen, Problem
from kontroller.importing.sources.reporting import read_or_report

_FORMAT: Final = "4"


class _Names(NamedTuple):
    """The names of the attributes."""

    topic: str
    partitions: str
    replicas: str


_TYPES: Final = {
    "kafka_topic": _Names("name", "partitions", "replication_factor"),
    "confluent_kafka_topic": _Names("topic_name", "partitions_count", ""),  # Confluent Cloud decides the replicas
}


def is_state(found: Fields) -> bool:
    """Return True for a state."""
    return "terraform_version" in found


def read_state(found: Fields, file: str) -> Iterator[Declared | Problem]:
    """Yield the topics of a state. Raises `Misshapen`."""
    if found.get("version") != _FORMAT:
        raise Misshapen(f"the state has not the format {_FORMAT}: write it with terraform state pull of 0.12 or later")
    for resource in found.list_fields("resources"):
        names = _TYPES.get(str(resource.get("type")))
        if names is None or resource.get("mode") != "managed":
            continue
        for instance in resource.list_fields("instances"):
            if "deposed" not in instance:
                place = f"{file}: {_make_address(resource, instance)}"
                yield read_or_report(place, instance, partial(_read_instance, instance, names, place))


def _read_instance(instance: Fields, names: _Names, place: str) -> Declared:
    attributes = instance.get_fields("attributes")
    topic = attributes.get_text(names.topic)
    if not topic:
        raise Misshapen(f"it has no {names.topic}")
    return Declared(
        place=place,
        topic=topic,
        partitions=attributes.get(names.partitions),
        replicas=attributes.get(names.replicas),
        config=attributes.get_fields("config"),
    )


def _make_address(resource: Fields, instance: Fields) -> str:
    parts = (resource.get(name) for name in ("module", "type", "name"))
    index = instance.get("index_key")
    return ".".join(str(part) for part in parts if part) + (f"[{index}]" if index is not None else "")
