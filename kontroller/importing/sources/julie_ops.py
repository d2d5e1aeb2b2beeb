"""Topics of a topology of julie-ops (before: Kafka Topology Builder), named as the tool does by default.

The name is the context, further fields of the topology in their order, the project, the topic, and its data type, with
dots between them. A plan's configuration goes before the topic's own."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kontroller.importing.declared import Declared
from kontroller.importing.sources.loading import Fields, Misshapen, Problem
from kontroller.importing.sources.reporting import read_or_report

NOTE: Final = (
    "topics are named as julie-ops does by default, CONTEXT.PROJECT.TOPIC: rename them if topology.topic.prefix.format is "
    "set; access rules, schemas and connectors are left out"
)
_PARTITIONS: Final = "num.partitions"
_REPLICAS: Final = "replication.factor"
_NOT_IN_NAMES: Final = frozenset({"projects", "context", "platform", "special_topics"})


def is_topology(found: Fields) -> bool:
    """Return True for a topology."""
    return "context" in found and ("projects" in found or "special_topics" in found)


def is_plans(found: Fields) -> bool:
    """Return True for a file of plans."""
    return found.keys() == {"plans"}


def read_topology(found: Fields, plans: Mapping[str, Any], file: str) -> Iterator[Declared | Problem]:
    """Yield the topics of a topology. Raises `Misshapen`."""
    parts = [found.get_text("context"), *(found.get_text(name) for name in found if name not in _NOT_IN_NAMES)]
    for project in found.list_fields("projects"):
        prefix = ".".join(part or "" for part in (*parts, project.get_text("name")))
        for topic in project.list_fields("topics"):
            yield _report(topic, f"{prefix}.", plans, file)
    for topic in found.list_fields("special_topics"):
        yield _report(topic, "", plans, file)


def _report(topic: Fields, prefix: str, plans: Mapping[str, Any], file: str) -> Declared | Problem:
    place = f"{file}:{topic.line}" if topic.line else file
    return read_or_report(place, topic, lambda: _read_topic(topic, prefix, plans, place))


def _read_topic(topic: Fields, prefix: str, plans: Mapping[str, Any], place: str) -> Declared:
    name, data_type, plan = topic.get_text("name"), topic.get_text("dataType"), topic.get_text("plan")
    if name is None:
        raise Misshapen("a topic has no name")
    config = dict(topic.get_fields("config"))
    if plan is not None and not isinstance(plans.get(plan), Fields):
        raise Misshapen(f"the plan {plan} is in none of the files: add the file with the plans")
    if plan is not None:
        config |= plans[plan].get_fields("config")
    return Declared(
        place=place,
        topic=f"{prefix}{name}{f'.{data_type}' if data_type else ''}",
        partitions=config.pop(_PARTITIONS, None),
        replicas=config.pop(_REPLICAS, None),
        config=config,
    )
