"""Rules for topics, in the form of the validations of Kubernetes' ValidatingAdmissionPolicy.

A rule is an expression in CEL that is true for the changes that it allows, and a message for the others. The file is
read once, when a process starts. A rule that cannot be evaluated refuses the change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from controller_core.model.topics.topic_changes import Objection, TopicChange, TopicShape
from controller_core.model.topics.topic_names import INTERNAL_TOPICS
from controller_core.model.wording import shorten
from controller_core.rules.cel import (
    BOOL,
    STRING,
    VARIABLES,
    EvaluationFailed,
    InvalidExpression,
    Values,
    compile_expression,
)

MAX_RULES: Final = 50
MAX_EXPRESSION_LENGTH: Final = 4_096
MAX_MESSAGE_LENGTH: Final = 1_000
MAX_ENTRIES: Final = 500
"""Most assigned partitions, and configurations, of a change that rules judge. They bound the time of an evaluation."""
_MAX_LENGTH: Final = 1 << 20
"""About the size of a ConfigMap."""


class InvalidRules(Exception):
    """A file of rules that cannot be used, with all of its problems."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Rule(BaseModel):
    """A rule as the file has it."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)

    expression: str = Field(min_length=1, max_length=MAX_EXPRESSION_LENGTH)
    message: str | None = Field(default=None, min_length=1, max_length=MAX_MESSAGE_LENGTH)
    message_expression: str | None = Field(default=None, min_length=1, max_length=MAX_EXPRESSION_LENGTH)

    @model_validator(mode="after")
    def _has_message(self) -> Self:
        if self.message is None and self.message_expression is None:
            raise ValueError("give a message or a messageExpression, which says what to change")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompiledRule:
    expression: str
    allows: Any
    message: str
    explain: Any | None

    def find_objection(self, values: Values) -> Objection | None:
        try:
            if values.evaluate(self.allows):
                return None
        except EvaluationFailed as error:
            message = f"the rule {shorten(self.expression, 200)!r} cannot be evaluated: {error}"
            return Objection(message=message, failed_rule=self.expression)
        return Objection(message=self._explain(values))

    def _explain(self, values: Values) -> str:
        """Return the message of the refusal. As in Kubernetes, a failed messageExpression only changes the words."""
        if self.explain is None:
            return self.message
        try:
            return shorten(str(values.evaluate(self.explain)), MAX_MESSAGE_LENGTH) or self.message
        except EvaluationFailed:
            return self.message


class CompiledTopicRules:
    """The rules of a file (`TopicRules`)."""

    def __init__(self, rules: Sequence[_CompiledRule], source: str) -> None:
        """Take the rules, and their source text, which names the variables that they read."""
        self._rules = rules
        self._reads_configs = "configs" in source
        self._reads_replicas = "replicas" in source

    @property
    def count(self) -> int:
        return len(self._rules)

    def find_objection(self, change: TopicChange) -> Objection | None:
        """See `TopicRules`. Kafka's internal topics break no rule, because brokers create them."""
        if change.topic.name in INTERNAL_TOPICS:
            return None
        if self._reads_replicas and len(change.topic.replicas) > MAX_ENTRIES:
            return _make_size_objection("partitions with an assignment")
        if (
            self._reads_configs
            and max(len(shape.configs) for shape in (change.topic, change.old or change.topic)) > MAX_ENTRIES
        ):
            return _make_size_objection("configurations")
        values = Values(self._list_values(change))
        return next((found for rule in self._rules if (found := rule.find_objection(values))), None)

    def _list_values(self, change: TopicChange) -> dict[str, Any]:
        """Return the values of the variables that the rules read.

        Those of a missing `old` are left out, so an expression that needs them cannot be evaluated."""
        return {
            **self._name_fields("topic", change.topic),
            "topic.replicas": [list(brokers) for brokers in change.topic.replicas] if self._reads_replicas else [],
            **(self._name_fields("old", change.old) if change.old else {}),
            "old": None if change.old is None else True,
            "request.kind": str(change.kind),
            "request.principal": change.principal,
            "request.namespace": change.namespace,
        }

    def _name_fields(self, variable: str, shape: TopicShape) -> dict[str, Any]:
        return {
            f"{variable}.name": shape.name,
            f"{variable}.partitions": shape.partitions,
            f"{variable}.replicationFactor": shape.replication_factor,
            f"{variable}.configs": dict(shape.configs) if self._reads_configs else {},
        }


def read_topic_rules(path: Path) -> CompiledTopicRules:
    """Read the rules of a file, and compile them. Raises `InvalidRules`."""
    try:
        content = path.read_text("utf-8")
    except OSError as error:
        raise InvalidRules(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRules(f"{path} is not UTF-8 text") from error
    if len(content) > _MAX_LENGTH:
        raise InvalidRules(f"{path} has more than {_MAX_LENGTH} characters: remove rules")
    try:
        root: Any = yaml.compose(content, yaml.SafeLoader)
        document = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidRules(f"{path} is not YAML: {error}") from error
    if not isinstance(document, dict) or list(document) != ["rules"] or not isinstance(document["rules"], list):
        raise InvalidRules(f"{path} must have one list, `rules`, of rules with an expression and a message")
    if len(document["rules"]) > MAX_RULES:
        raise InvalidRules(f"{path} has {len(document['rules'])} rules, and may have {MAX_RULES}: join some with &&")
    nodes = root.value[0][1].value
    compiled, problems = [], []
    for number, (raw, node) in enumerate(zip(document["rules"], nodes, strict=True), 1):
        try:
            compiled.append(_compile(raw, node))
        except _Misplaced as error:
            problems.append(f"{path}:{error.line}: rule {number}: {error.problem}")
    if problems:
        raise InvalidRules(*problems)
    return CompiledTopicRules(compiled, content)


class _Misplaced(Exception):
    """A problem of a rule, and its line in the file."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


def _compile(raw: Any, node: yaml.Node) -> _CompiledRule:
    """Compile a rule. Raises `_Misplaced`."""
    try:
        rule = _Rule.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise _Misplaced(f"{where}{first['msg'].removeprefix('Value error, ')}", node.start_mark.line + 1) from error
    fields = {key.value: value for key, value in node.value}
    explain = None
    if rule.message_expression is not None:
        explain = _compile_field("messageExpression", rule.message_expression, STRING, fields)
    return _CompiledRule(
        expression=rule.expression,
        allows=_compile_field("expression", rule.expression, BOOL, fields),
        message=rule.message or f"the rule {shorten(rule.expression, 200)!r} forbids it",
        explain=explain,
    )


def _compile_field(name: str, source: str, wanted: str, fields: Mapping[str, yaml.ScalarNode]) -> Any:
    try:
        return compile_expression(source, wanted)
    except InvalidExpression as error:
        node = fields[name]
        # The lines of a literal block are those of the text, and begin below the name.
        line = node.start_mark.line + 1 + (error.line if node.style == "|" else 0)
        column = "" if error.column is None else f", column {error.column}"
        message = f"{name}{column}: {error.reason}. The variables are {', '.join(VARIABLES)}"
        raise _Misplaced(message, line) from error


def _make_size_objection(what: str) -> Objection:
    limit = f"at most {MAX_ENTRIES} {what}"
    return Objection(message=f"the rules for topics judge {limit} of a topic at once: ask for fewer", failed_rule=limit)
