"""Topic rules: what a file may say, and what its rules allow."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller_core.model.topics.topic_changes import ChangeKind, TopicChange
from controller_core.rules.topic_rules import MAX_ENTRIES, MAX_RULES, InvalidRules, read_topic_rules
from tests.unit.rules.rule_files import THREE_REPLICAS, brokers, creation, rule, shape, write_rules

RETENTION = rule(
    "!('retention.ms' in topic.configs) || (int(topic.configs['retention.ms']) >= 0 && "
    "int(topic.configs['retention.ms']) <= 30 * 24 * 3600 * 1000)",
    "keep data for at most 30 days",
)
NAMES = {
    "expression": "topic.name.startsWith((request.kind == 'KafkaTopic' ? request.namespace : "
    "request.principal.replace('User:', '')) + '.')",
    "messageExpression": "'%s must begin with the name of its team'.format([topic.name])",
}


def refusal(folder: Path, change: TopicChange, *rules: dict[str, str]) -> str | None:
    objection = read_topic_rules(write_rules(folder, *rules)).find_objection(change)
    return objection.message if objection is not None else None


def problems(folder: Path, *rules: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(InvalidRules) as refused:
        read_topic_rules(write_rules(folder, *rules))
    return refused.value.problems


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (creation("alice.orders", factor=3, retention_ms="1000"), None),
        (creation("alice.orders", factor=2), "use at least 3 replicas"),
        (creation("orders", factor=3), "orders must begin with the name of its team"),
        (creation("alice.orders", factor=3, retention_ms="-1"), "keep data for at most 30 days"),
        (creation("alice.orders", factor=3, retention_ms="2592000001"), "keep data for at most 30 days"),
        (
            TopicChange(kind=ChangeKind.KAFKA_TOPIC, topic=shape("team-a.orders", factor=3), namespace="team-a"),
            None,
        ),
        (
            TopicChange(kind=ChangeKind.KAFKA_TOPIC, topic=shape("team-b.orders", factor=3), namespace="team-a"),
            "team-b.orders must begin with the name of its team",
        ),
    ],
)
def test_the_first_rule_that_a_change_breaks_refuses_it(
    tmp_path: Path, change: TopicChange, expected: str | None
) -> None:
    assert refusal(tmp_path, change, THREE_REPLICAS, NAMES, RETENTION) == expected


def test_old_is_null_for_a_new_topic_and_otherwise_the_topic_before(tmp_path: Path) -> None:
    grows = rule("old == null || topic.partitions <= 2 * old.partitions", "double the partitions at most")
    change = creation(partitions=12)
    assert refusal(tmp_path, change, grows) is None
    change = replace(change, kind=ChangeKind.CREATE_PARTITIONS, old=shape(partitions=6))
    assert refusal(tmp_path, change, grows) is None
    assert refusal(tmp_path, replace(change, old=shape(partitions=5)), grows) == "double the partitions at most"


def test_assigned_brokers_can_be_judged(tmp_path: Path) -> None:
    not_on_7 = rule("topic.replicas.all(each, !(7 in each))", "broker 7 is reserved")
    change = creation(partitions=2, factor=2)
    assert refusal(tmp_path, change, not_on_7) is None
    for last, expected in ((brokers(2, 3), None), (brokers(2, 7), "broker 7 is reserved")):
        assigned = replace(change, topic=replace(change.topic, replicas=[brokers(1, 2), last]))
        assert refusal(tmp_path, assigned, not_on_7) == expected


def test_a_rule_that_cannot_be_evaluated_refuses_the_change_with_the_reason(tmp_path: Path) -> None:
    rules = read_topic_rules(write_rules(tmp_path, rule("int(topic.configs['retention.ms']) < 10")))
    for change, why in ((creation(), "Key not found in map"), (creation(retention_ms="x"), "cannot convert string")):
        objection = rules.find_objection(change)
        assert objection is not None
        assert objection.failed_rule == "int(topic.configs['retention.ms']) < 10"
        assert "cannot be evaluated" in objection.message
        assert why in objection.message


def test_a_message_that_cannot_be_made_is_replaced_by_the_other_one(tmp_path: Path) -> None:
    failing = {"expression": "false", "messageExpression": "topic.configs['absent']"}
    assert refusal(tmp_path, creation(), failing) == "the rule 'false' forbids it"
    assert refusal(tmp_path, creation(), {**failing, "message": "because"}) == "because"


def test_internal_topics_break_no_rule(tmp_path: Path) -> None:
    assert refusal(tmp_path, creation("__consumer_offsets"), rule("false")) is None
    assert refusal(tmp_path, creation("__other"), rule("false")) == "no"


def test_the_work_of_an_evaluation_is_bounded(tmp_path: Path) -> None:
    change = creation(partitions=MAX_ENTRIES + 1)
    large = replace(change, topic=replace(change.topic, replicas=[brokers(1)] * (MAX_ENTRIES + 1)))
    assert "at most 500 partitions with an assignment" in str(
        refusal(tmp_path, large, rule("topic.replicas.size() > 0"))
    )
    assert refusal(tmp_path, large, rule("topic.partitions > 0")) is None, "no rule reads the assignment"
    many = replace(change, topic=replace(change.topic, configs={str(n): "" for n in range(MAX_ENTRIES + 1)}))
    assert "at most 500 configurations" in str(refusal(tmp_path, many, rule("topic.configs.size() > 0")))
    full = replace(change, topic=replace(change.topic, replicas=[brokers(1)] * MAX_ENTRIES))
    nested = rule("topic.replicas.all(a, topic.replicas.all(b, topic.replicas.all(c, c.size() > 0)))")
    assert "budget exceeded" in str(refusal(tmp_path, full, nested))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            rule("topic.nmae == 'a'"),
            "expression, column 6: undeclared reference to 'topic.nmae'. The variables are topic.",
        ),
        (rule("topic.partitions > 'a'"), "found no matching overload for '_>_' applied to '(int, string)'"),
        (rule("topic.partitions"), "expression: it gives INT, and must give BOOL"),
        (rule("topic.partitions >"), "expression, column 19: Syntax error"),
        (rule("old.partition > 3"), "old has no field of that name"),
        (rule("topic == null"), "undeclared reference to 'topic'"),
        (rule("true", ""), "message: String should have at least 1 character"),
        ({"expression": "true"}, "give a message or a messageExpression"),
        ({"expression": "true", "messageExpression": "1"}, "messageExpression: it gives INT, and must give STRING"),
        ({**rule("true"), "severity": "low"}, "severity: Extra inputs are not permitted"),
        (rule("true || " * 600 + "true"), "expression: String should have at most 4096 characters"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(tmp_path: Path, wrong: dict[str, str], expected: str) -> None:
    (problem,) = problems(tmp_path, THREE_REPLICAS, wrong)
    assert problem.startswith(f"{tmp_path}/rules.yaml:")
    assert ": rule 2: " in problem
    assert expected in problem


def test_a_problem_names_the_line_of_the_file_and_all_problems_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "rules:\n- expression: 'true'\n  message: a\n- message: b\n  expression: |\n    topic.partitions > 1 &&\n"
        "    topic.partitons < 9\n- expression: topic.nmae == ''\n  message: c\n"
    )
    with pytest.raises(InvalidRules) as refused:
        read_topic_rules(path)
    assert [each.split(": ")[:2] for each in refused.value.problems] == [
        [f"{path}:7", "rule 2"],
        [f"{path}:8", "rule 3"],
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "must have one list, `rules`"),
        ("- expression: 'true'", "must have one list, `rules`"),
        ("rules: []\nmore: 1", "must have one list, `rules`"),
        ("rules: [", "is not YAML"),
        ("rules: [a]", "rule 1: Input should be a valid dictionary"),
        (f"rules: [{'a, ' * (MAX_RULES + 1)}]", "has 51 rules, and may have 50"),
        ("#" * ((1 << 20) + 1), "has more than 1048576 characters"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(content)
    with pytest.raises(InvalidRules, match=expected.replace("`", ".")):
        read_topic_rules(path)


def test_a_missing_file_is_refused_and_an_empty_list_has_no_objections(tmp_path: Path) -> None:
    with pytest.raises(InvalidRules, match="cannot be read: No such file"):
        read_topic_rules(tmp_path / "rules.yaml")
    assert refusal(tmp_path, creation()) is None
