"""Names, environments and owners of clusters and topics, from a file of the user (`--names`).

    clusters:
      - {id: AbCdEfGhIjKlMnOpQrStUv, name: orders, environment: prod, owner: team-orders}
    topics:
      - {pattern: 'payments[.].*', owner: team-payments}

The first topic whose pattern matches a whole name decides. `cluster` restricts it to the cluster with that id.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

MOST_BYTES: Final = 4 << 20
_Text = Annotated[str, Field(max_length=200)]
_FIELDS: Final = ("name", "environment", "owner")


class UnusableNames(Exception):
    """A file of names that cannot be used. The message says what to change."""


class Named(BaseModel):
    """Name, environment and owner of a thing, as people call them. Empty: not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Text = ""
    environment: _Text = ""
    owner: _Text = ""


class NamedCluster(Named):
    """A cluster, by its id."""

    id: str = Field(min_length=1)


class NamedTopics(Named):
    """The topics whose whole names match a pattern."""

    pattern: str = Field(min_length=1)
    cluster: str | None = None

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern} is not a regular expression: {error}") from error
        return pattern

    def matches(self, cluster: str, topic: str) -> bool:
        return self.cluster in (None, cluster) and re.fullmatch(self.pattern, topic) is not None


class Names(BaseModel):
    """The names of a file. Things that are not in it have none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: tuple[NamedCluster, ...] = ()
    topics: tuple[NamedTopics, ...] = ()

    @model_validator(mode="after")
    def _check_ids(self) -> "Names":
        counts = Counter(each.id for each in self.clusters)
        if twice := sorted(name for name, count in counts.items() if count > 1):
            raise ValueError(f"cluster {twice[0]} is named twice: remove one")
        return self

    @cached_property
    def by_id(self) -> Mapping[str, NamedCluster]:
        return {each.id: each for each in self.clusters}

    def say(self, cluster: str) -> str:
        """Return a cluster's name with its environment; its id if it has no name."""
        named = self.by_id.get(cluster)
        if named is None or not named.name:
            return cluster
        return f"{named.name} ({named.environment})" if named.environment else named.name

    def describe_cluster(self, cluster: str) -> Mapping[str, str]:
        """Return name, environment and owner."""
        return _list_fields(self.by_id.get(cluster))

    def describe_topic(self, cluster: str, topic: str) -> Mapping[str, str]:
        """Return name, environment and owner. The cluster's hold where the topic's pattern leaves them open."""
        first = next((each for each in self.topics if each.matches(cluster, topic)), None)
        own, inherited = _list_fields(first), self.describe_cluster(cluster)
        return {name: own[name] or (inherited[name] if name != "name" else "") for name in _FIELDS}


def _list_fields(named: Named | None) -> dict[str, str]:
    return {name: "" if named is None else getattr(named, name) for name in _FIELDS}


def read_names(path: Path) -> Names:
    """Read a file. Raises `UnusableNames`."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise UnusableNames(f"{path} has more than {MOST_BYTES:,} bytes: name fewer clusters and topics")
        content = yaml.safe_load(text)
        return Names.model_validate({} if content is None else content)
    except OSError as error:
        raise UnusableNames(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnusableNames(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UnusableNames(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from error
