"""The levels of features by release, as `version-mapping` and `feature-dependencies` of Kafka's tools answer.

From Kafka's source, `server-common`, package `org.apache.kafka.server.common`, tag 4.4.0: the enums MetadataVersion,
KRaftVersion, TransactionVersion, GroupVersion, EligibleLeaderReplicasVersion, ShareVersion and StreamsVersion. A
release has the highest level of a feature whose bootstrap metadata version is not above its own.
`tests/real/kraft/test_feature_levels.py` compares this table with the tools of several releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

METADATA_VERSION: Final = "metadata.version"
_OLDEST_LEVEL: Final = 4
_NAMES: Final = (
    "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1",
    "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1",
    "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0",
    "4.4-IV1", "4.4-IV2",
)  # fmt: skip
"""The production metadata versions. 3.3-IV0 is the first one that a cluster stores."""
_METADATA_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {name: level for level, name in enumerate(_NAMES, start=_OLDEST_LEVEL)}
)
NEWEST: Final = _NAMES[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A level of a feature above 0."""

    since: str
    """The bootstrap metadata version: releases from it on have this level."""
    needs: Mapping[str, int] = field(default_factory=dict)
    """The levels of other features that this one depends on."""


_FEATURES: Final[Mapping[str, tuple[_Level, ...]]] = MappingProxyType(
    {
        "kraft.version": (_Level(since="3.9-IV0"),),
        "transaction.version": (_Level(since="4.0-IV2"), _Level(since="4.0-IV2")),
        "group.version": (_Level(since="4.0-IV0"),),
        "eligible.leader.replicas.version": (_Level(since="4.1-IV0", needs={METADATA_VERSION: 23}),),
        "share.version": (_Level(since="4.2-IV0"), _Level(since="4.4-IV0")),
        "streams.version": (_Level(since="4.2-IV1"),),
    }
)
"""The levels of each feature from 1 on, in the order of Kafka's tools. Every feature also has level 0."""


class UnknownLevel(Exception):
    """There is no such release, feature or level."""


def parse_release(text: str) -> str:
    """Return the metadata version of a release: `4.1-IV0`, or the last one of `4.1` or `4.1.2`. Raises
    `UnknownLevel`."""
    name = text.strip()
    if name not in _METADATA_LEVELS:
        line = ".".join(name.split(".")[:2])
        of_line = [each for each in _NAMES if each.partition("-")[0] == line]
        if not of_line:
            raise UnknownLevel(f"Unknown release version '{text}'. Supported versions are: {_NAMES[0]} to {NEWEST}")
        name = of_line[-1]
    return name


def map_release(text: str) -> dict[str, int]:
    """Return the level of each feature in a release, metadata.version first. Raises `UnknownLevel`."""
    metadata = _METADATA_LEVELS[parse_release(text)]
    others = {
        feature: sum(_METADATA_LEVELS[level.since] <= metadata for level in levels)
        for feature, levels in _FEATURES.items()
    }
    return {METADATA_VERSION: metadata, **others}


def find_dependencies(feature: str, level: int) -> Mapping[str, int]:
    """Return the levels that a level depends on. Raises `UnknownLevel`."""
    if feature == METADATA_VERSION:
        describe_level(feature, level)
        return {}
    if feature not in _FEATURES:
        raise UnknownLevel(f"Unknown feature: {feature}")
    levels = _FEATURES[feature]
    if not 0 <= level <= len(levels):
        raise UnknownLevel(f"No feature:{feature} with feature level {level}")
    return levels[level - 1].needs if level else {}


def describe_level(feature: str, level: int) -> str:
    """Return `feature=level`, with the name of a metadata version. Raises `UnknownLevel`."""
    if feature != METADATA_VERSION:
        return f"{feature}={level}"
    name = next((name for name, each in _METADATA_LEVELS.items() if each == level), None)
    if name is None:
        raise UnknownLevel(f"Unknown metadata.version {level}")
    return f"{feature}={level} ({name})"
