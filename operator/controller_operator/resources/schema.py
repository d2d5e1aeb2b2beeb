"""What the models of the resources are built from: the base model, scalars with their bounds, and CEL rules.

An attribute's docstring is its description in `kubectl explain`. A rule that only the API server holds (CEL) is
attached with `rules` to the field or model that it guards, and ends up as `x-kubernetes-validations` in the generated
schema. Lists and strings that a rule reads are bounded, because the API server refuses a rule whose worst case costs
too much.
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
"""Replicas of one partition. The rule that they are distinct is checked for every partition of a list."""
MAX_PARTITIONS: Final = 5_000
"""Partitions in one object: with what the API server notes per entry, near what etcd takes as one value (1.5 MiB)."""
MAX_STATUS_ENTRIES: Final = 500
"""Entries of a list in a status; the counts beside such a list are always complete."""
MAX_TOPIC_NAME: Final = 249

TOPIC_CHARACTERS: Final = r"self.matches(r'^[\w.-]+$')"
"""Short on purpose: the cost of a match counts with the length of its pattern."""


class Model(BaseModel):
    """The base of everything in a resource: camelCase outside, snake_case inside, immutable, nothing unknown."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
    )


class Observed(Model):
    """The base of everything in a status: what another version of the operator wrote may have more fields."""

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in CEL that the API server holds an object to, and what it says when the object breaks it."""

    rule: str
    message: str
    field: str = ""
    """The path of the field to change, such as `.partitions`, from where the rule is; empty: that place itself."""

    @property
    def schema(self) -> JsonDict:
        """The rule as the API server takes it: with the field that its error is about, and the kind of the error."""
        reason = "FieldValueForbidden" if "oldSelf" in self.rule else "FieldValueInvalid"
        named: JsonDict = {"fieldPath": self.field} if self.field else {}
        return {"rule": self.rule, "message": self.message, "reason": reason, **named}


def rules(*of_the_schema: Rule) -> JsonDict:
    """The rules as `json_schema_extra` of a field or a model."""
    return {"x-kubernetes-validations": [each.schema for each in of_the_schema]}


def keyed_by(*fields: str) -> JsonDict:
    """Marks a list of objects whose `fields` name an entry: the API server refuses the same name twice."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(fields)}


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Timestamp = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""A moment as Kubernetes writes it: UTC, whole seconds."""


def _legal(name: TopicName) -> TopicName:
    """The same as the rule of the schema, for an object that was stored before there was that rule."""
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
"""The brokers that a spec puts a partition's replicas on, the preferred one first."""

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
"""Times that come again and again: minute, hour, day of month, month, day of week."""

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
"""Brokers as the cluster shows them in a status."""
