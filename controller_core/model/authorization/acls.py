"""Kafka's ACLs as values: a principal, an operation, a resource, a host, allowed or denied.

A resource is looked up by its name, by `*`, and by the prefixes of its name, one for each length that some prefixed ACL
has. The entries of one pattern are a set, in which a decision looks up the few entries that matter to it. So the cost
of a decision depends on the number of prefix lengths, not on the number of ACLs or entries.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from controller_core.model.authorization.principal import USER, Principal

ANY_PRINCIPAL: Final = str(Principal(USER, "*"))
ANY_HOST: Final = "*"
ANY_NAME: Final = "*"


class ResourceType(Enum):
    """The resource types of ACLs that are checked. Kafka has more."""

    TOPIC = "Topic"
    CLUSTER = "Cluster"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalId"


class Operation(IntEnum):
    """An operation, by Kafka's code, which is also its bit in responses."""

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
        """The name in ZooKeeper's ACLs and Kafka's tools, such as `DescribeConfigs`."""
        return self.name.title().replace("_", "")


class Resource(NamedTuple):
    """A resource that an operation applies to."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.value}:{self.name}"


THE_CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")


def make_topic_resource(name: str) -> Resource:
    """Return the resource for a topic."""
    return Resource(ResourceType.TOPIC, name)


class Pattern(NamedTuple):
    """The resources of an ACL: one name, all names with a prefix, or all names (`*`)."""

    type: ResourceType
    name: str
    is_prefix: bool = False


class Entry(NamedTuple):
    """One line of an ACL."""

    is_allowed: bool
    principal: str
    """Type and name, in the form of `Principal`."""
    operation: Operation
    host: str


NOBODY_MAY: Final = frozenset({Entry(False, ANY_PRINCIPAL, Operation.ALL, ANY_HOST)})
"""The entries of a resource whose ACL cannot be read."""


class AclTable:
    """All ACLs of a cluster, by their patterns."""

    def __init__(self) -> None:
        self._by_type = {kind: _OfType() for kind in ResourceType}

    def __len__(self) -> int:
        return sum(len(one.of_names) + len(one.of_prefixes) for one in self._by_type.values())

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace the entries of a pattern. As in Kafka, an empty set means no ACL."""
        of_type, kept = self._by_type[pattern.type], frozenset(entries)
        of_type.by_entry = None
        known = of_type.of_prefixes if pattern.is_prefix else of_type.of_names
        had = known.pop(pattern.name, None) is not None
        if kept:
            known[pattern.name] = kept
        if pattern.is_prefix:
            of_type.count(len(pattern.name), bool(kept) - had)

    def find_entries(self, resource: Resource) -> list[frozenset[Entry]]:
        """Return the entries of each pattern that matches a resource; empty if no ACL matches."""
        kind, name = resource
        of_type = self._by_type[kind]
        found = [of_type.of_names.get(each) for each in {ANY_NAME, name}]
        found += [of_type.of_prefixes.get(name[:length]) for length in of_type.lengths if length <= len(name)]
        return [entries for entries in found if entries is not None]

    def find_patterns(self, kind: ResourceType, entries: Iterable[Entry]) -> "Patterns":
        """Return the patterns of a resource type that have at least one of these entries."""
        of_entry = self._by_type[kind].index_by_entry()
        found = [of_entry[entry] for entry in entries if entry in of_entry]
        return Patterns(
            frozenset[str]().union(*(each.names for each in found)),
            frozenset[str]().union(*(each.prefixes for each in found)),
        )


class Patterns(NamedTuple):
    """The patterns of one resource type, without the type."""

    names: AbstractSet[str]
    """Literal names, and `*`."""
    prefixes: AbstractSet[str]


@dataclass(slots=True)
class _OfType:
    """The ACLs of one resource type."""

    of_names: dict[str, frozenset[Entry]] = field(default_factory=dict)
    of_prefixes: dict[str, frozenset[Entry]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    """The number of prefixes, by their length."""
    by_entry: dict[Entry, Patterns] | None = None
    """The patterns of each entry. None until it is asked for, and after each change."""

    def count(self, length: int, more: int) -> None:
        self.lengths[length] = self.lengths.get(length, 0) + more
        if not self.lengths[length]:
            del self.lengths[length]

    def index_by_entry(self) -> Mapping[Entry, Patterns]:
        if self.by_entry is None:
            names, prefixes = _invert(self.of_names), _invert(self.of_prefixes)
            self.by_entry = {
                entry: Patterns(names.get(entry, frozenset()), prefixes.get(entry, frozenset()))
                for entry in names.keys() | prefixes.keys()
            }
        return self.by_entry


def _invert(acls: Mapping[str, frozenset[Entry]]) -> dict[Entry, set[str]]:
    inverted: dict[Entry, set[str]] = {}
    for name, entries in acls.items():
        for entry in entries:
            inverted.setdefault(entry, set()).add(name)
    return inverted
