"""Kafka's ACLs as values: who may do, or may not do, what with which resources, from where.

A resource is looked up by its name, by `*`, and by each prefix of its name that some ACL has. Of one resource the entries
are a set, of which a decision looks up the few that would decide it. So what a decision costs depends neither on how many
resources have ACLs nor on how many entries one has, but on how many different lengths the prefixes have.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
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
        self._entries: dict[Pattern, frozenset[Entry]] = {}
        self._lengths: defaultdict[ResourceType, Counter[int]] = defaultdict(Counter)
        """Of prefixes: how many have so many letters."""

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replaces the entries of a pattern. None are as no ACL, as with Kafka."""
        self._remove(pattern)
        if kept := frozenset(entries):
            self._entries[pattern] = kept
            if pattern.is_prefix:
                self._lengths[pattern.type][len(pattern.name)] += 1

    def of(self, resource: Resource) -> list[Set[Entry]]:
        """The entries of each pattern that is about a resource; none where there is no such ACL."""
        found = (self._entries.get(pattern) for pattern in self._patterns(resource))
        return [entries for entries in found if entries is not None]

    def _patterns(self, resource: Resource) -> Iterator[Pattern]:
        kind, name = resource
        yield Pattern(kind, ANY_NAME)
        if name != ANY_NAME:
            yield Pattern(kind, name)
        for length in self._lengths[kind]:
            if length <= len(name):
                yield Pattern(kind, name[:length], is_prefix=True)

    def _remove(self, pattern: Pattern) -> None:
        if self._entries.pop(pattern, None) is not None and pattern.is_prefix:
            lengths = self._lengths[pattern.type]
            lengths[len(pattern.name)] -= 1
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]
