"""Kafka's ACLs as values: who may do, or may not do, what with which resources, from where.

A resource is looked up by its name, by `*`, and by the beginnings of its name that are as long as some prefix with an ACL.
Of one pattern the entries are a set, of which a decision looks up the few that would decide it. So what a decision costs
depends neither on how many ACLs there are nor on how many entries one has, but on how many lengths prefixes have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from controller_core.model.authorization.principal import USER, Principal

ANY_PRINCIPAL: Final = str(Principal(USER, "*"))
ANY_HOST: Final = "*"
ANY_NAME: Final = "*"


class ResourceType(Enum):
    """What there are ACLs of that a controller looks at; Kafka has more."""

    TOPIC = "Topic"
    CLUSTER = "Cluster"


class Operation(IntEnum):
    """What may be done, by Kafka's code, which is its bit in answers."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14

    @property
    def title(self) -> str:
        """As ACLs in ZooKeeper and Kafka's tools write it: `DescribeConfigs`."""
        return self.name.title().replace("_", "")


class Resource(NamedTuple):
    """What somebody wants to do something with."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.value}:{self.name}"


THE_CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")


def topic(name: str) -> Resource:
    """The resource that a topic is."""
    return Resource(ResourceType.TOPIC, name)


class Pattern(NamedTuple):
    """Which resources an ACL is about: one, those whose names begin so, or by the name `*` all."""

    type: ResourceType
    name: str
    is_prefix: bool = False


class Entry(NamedTuple):
    """One line of an ACL."""

    is_allowed: bool
    principal: str
    """Kind and name, as `Principal` writes itself."""
    operation: Operation
    host: str


NOBODY_MAY: Final = frozenset({Entry(False, ANY_PRINCIPAL, Operation.ALL, ANY_HOST)})
"""What counts for a resource whose ACL cannot be read."""


class AclTable:
    """All ACLs of a cluster, by their patterns."""

    def __init__(self) -> None:
        self._by_type = {kind: _OfType() for kind in ResourceType}

    def __len__(self) -> int:
        return sum(len(one.of_names) + len(one.of_prefixes) for one in self._by_type.values())

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replaces the entries of a pattern. None are as no ACL, as with Kafka."""
        of_type, kept = self._by_type[pattern.type], frozenset(entries)
        known = of_type.of_prefixes if pattern.is_prefix else of_type.of_names
        had = known.pop(pattern.name, None) is not None
        if kept:
            known[pattern.name] = kept
        if pattern.is_prefix:
            of_type.count(len(pattern.name), bool(kept) - had)

    def of(self, resource: Resource) -> list[frozenset[Entry]]:
        """The entries of each pattern that is about a resource; none where there is no such ACL."""
        kind, name = resource
        of_type = self._by_type[kind]
        found = [of_type.of_names.get(each) for each in {ANY_NAME, name}]
        found += [of_type.of_prefixes.get(name[:length]) for length in of_type.lengths if length <= len(name)]
        return [entries for entries in found if entries is not None]


@dataclass(slots=True)
class _OfType:
    """Those of one type of resources."""

    of_names: dict[str, frozenset[Entry]] = field(default_factory=dict)
    of_prefixes: dict[str, frozenset[Entry]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    """How many prefixes have so many letters."""

    def count(self, length: int, more: int) -> None:
        self.lengths[length] = self.lengths.get(length, 0) + more
        if not self.lengths[length]:
            del self.lengths[length]
