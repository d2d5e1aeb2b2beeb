"""The building blocks of the resources' models: the base model, scalars with their bounds, and CEL rules.

An attribute's docstring is its description in `kubectl explain`. A rule that only the API server checks (CEL) is
attached with `rules` to its field or model, and ends up as `x-kubernetes-validations` in the generated schema. Lists
and strings that a rule reads are bounded, because the API server refuses a rule whose worst case costs too much.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.topics.topic_names import explain_illegal

MAX_REPLICAS: Final = 20
"""Replicas of one partition. The rule that they are distinct is checked for every partition of a list, so few are
allowed."""
MAX_EXPECTED_REPLICAS: Final = 1_000
"""Replicas that a partition may have before a move. No rule checks them, so many are allowed."""
MAX_PARTITIONS: Final = 5_000
"""Partitions in one object. With the API server's own notes per entry this is near etcd's limit of one value (1.5
MiB)."""
MAX_STATUS_ENTRIES: Final = 500
"""Entries of a list in a status. The counts beside such a list are always complete."""
MAX_TOPIC_NAME: Final = 249

TOPIC_CHARACTERS: Final = r"self.matches(r'^[\w.-]+$')"
"""Short on purpose: the cost of a match rises with the length of its pattern."""


class Model(BaseModel):
    """The base of everything in a resource: camelCase outside, snake_case inside, immutable, no unknown fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
    )


class Observed(Model):
    """The base of everything in a status. Another version of the operator may have written more fields."""

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule that the API server enforces, and the message for an object that breaks it."""

    rule: str
    message: str
    field: str = ""
    """The path of the field to change, such as `.partitions`, relative to the rule. Empty: the rule's own field."""

    @property
    def schema(self) -> JsonDict:
        """The rule as the API server takes it, with the field and the kind of its error."""
        reason = "FieldValueForbidden" if "oldSelf" in self.rule else "FieldValueInvalid"
        named: JsonDict = {"fieldPath": self.field} if self.field else {}
        return {"rule": self.rule, "message": self.message, "reason": reason, **named}


def rules(*of_the_schema: Rule) -> JsonDict:
    """Return the rules as `json_schema_extra` of a field or a model."""
    return {"x-kubernetes-validations": [each.schema for each in of_the_schema]}


def key_by(*fields: str) -> JsonDict:
    """Mark a list of objects whose `fields` name an entry, so that the API server refuses the same name twice."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(fields)}


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Timestamp = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""A moment as Kubernetes writes it: UTC, whole seconds."""


def _legal(name: TopicName) -> TopicName:
    """Apply the schema's rule to names that were stored before the rule existed."""
    if (why := explain_illegal(name)) is not None:
        raise ValueError(why)
    return name


Topic = Annotated[
    TopicName,
    AfterValidator(_legal),
    Field(
        min_length=1,
        max_length=MAX_TOPIC_NAME,
        json_schema_extra=rules(
            Rule(
                f"{TOPIC_CHARACTERS} && self != '.' && self != '..'",
                "a topic name has only the characters a-z A-Z 0-9 . _ - and is neither '.' nor '..'",
            )
        ),
    ),
]
Partition = Annotated[PartitionId, Field(ge=0, le=2**31 - 1)]
Broker = Annotated[BrokerId, Field(ge=0, le=2**31 - 1)]

Replicas = Annotated[
    tuple[Broker, ...],
    Field(
        min_length=1,
        max_length=MAX_REPLICAS,
        json_schema_extra=rules(
            Rule(
                "self.all(broker, self.indexOf(broker) == self.lastIndexOf(broker))",
                "the replicas of a partition are on different brokers: name each broker once",
            )
        ),
    ),
]
"""The brokers of a partition's replicas in a spec, the preferred one first."""

ExpectedReplicas = Annotated[tuple[Broker, ...], Field(min_length=1, max_length=MAX_EXPECTED_REPLICAS)]
"""The brokers of a partition's replicas before a move, the preferred one first."""

LogDirs = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=255)], ...], Field(min_length=1, max_length=MAX_REPLICAS)
]
"""The log directories of a partition's replicas in a spec, in the order of the replicas."""

Cron = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        json_schema_extra=rules(
            Rule(
                r"self.matches(r'^\s*\S+(\s+\S+){4}\s*$')",
                "schedule is a cron expression of five fields, such as 30 3 * * SUN",
            )
        ),
    ),
]
"""A recurring time: minute, hour, day of month, month, day of week."""

TimeZone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        json_schema_extra=rules(
            Rule(r"self.matches(r'^[\w+/-]+$')", "timeZone is a name of the IANA time zones, such as Europe/Berlin")
        ),
    ),
]
"""The name of a time zone."""

ObservedReplicas = tuple[BrokerId, ...]
"""Brokers in a status, as the cluster shows them."""
