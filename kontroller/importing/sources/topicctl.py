"""Topics as topicctl (segmentio) declares them: one document for each, with `meta` and `spec`."""

from typing import Final

from kontroller.importing.declared import Declared
from kontroller.importing.sources.loading import Fields, Misshapen
from kontroller.importing.values import Unreadable, normalize_number

_MINUTE_MS: Final = 60_000
_RETENTION: Final = "retention.ms"
_DESCRIPTION: Final = "kubernetes.io/description"
"""Kubernetes' own annotation for a description."""


def is_topicctl(found: Fields) -> bool:
    """Return True for topicctl's documents: topics, clusters, users and ACLs."""
    return "meta" in found and "spec" in found and "apiVersion" not in found


def is_topic(found: Fields) -> bool:
    """Return True for topics. Clusters, users and ACLs have no partitions."""
    spec = found.get_fields("spec")
    return "partitions" in spec or "replicationFactor" in spec


def read_topic(found: Fields, place: str) -> Declared:
    """Read a topic. Raises `Misshapen`."""
    meta, spec = found.get_fields("meta"), found.get_fields("spec")
    topic = meta.get_text("name")
    if not topic:
        raise Misshapen("meta has no name")
    placement = spec.get_fields("placement")
    strategy = placement.get_text("strategy")
    notes, faults = [], []
    if strategy not in (None, "any", "static"):
        notes.append(f"placement {strategy} is left out: the operator chooses the brokers")
    if "migration" in spec:
        notes.append("migration is left out: set reassignment.throttle to limit the rate of moves")
    config = dict(spec.get_fields("settings"))
    given, minutes = spec.get("retentionMinutes"), 0
    try:
        minutes = 0 if given is None else int(normalize_number(given))
    except (ValueError, Unreadable):
        faults.append(f"retentionMinutes: {given} is no number")
    if minutes and config.get(_RETENTION) is not None:
        faults.append(f"it has both retentionMinutes and {_RETENTION}: keep one of them")
    elif minutes:  # topicctl treats 0 as unset, but retention.ms=0 would delete the data
        config[_RETENTION] = str(minutes * _MINUTE_MS)
    description = meta.get_text("description")
    return Declared(
        place=place,
        topic=topic,
        cluster=meta.get_text("cluster"),
        partitions=spec.get("partitions"),
        replicas=spec.get("replicationFactor"),
        replica_assignment=placement.get("staticAssignments") if strategy == "static" else None,
        config=config,
        labels=meta.get_fields("labels"),
        annotations={_DESCRIPTION: description.strip()} if description else {},
        notes=tuple(notes),
        faults=tuple(faults),
    )
