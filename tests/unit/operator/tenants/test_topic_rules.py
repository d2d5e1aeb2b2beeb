"""Topic rules over KafkaTopics: a refused change leaves everything as it is, and a later spec goes on."""

from pathlib import Path
from typing import Any

import pytest

from controller_core.model.topics.topic_changes import TopicRules
from controller_core.rules.topic_rules import read_topic_rules
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, healthy, kafka_topic, status_of, view
from tests.unit.rules.rule_files import rule, write_rules

LIVE = view(healthy([1, 2], [2, 3]))
"""The topic has two partitions with two replicas."""


@pytest.fixture
def rules(tmp_path: Path) -> TopicRules:
    return read_topic_rules(
        write_rules(
            tmp_path,
            rule("old != null || topic.replicationFactor >= 3", "use at least 3 replicas"),
            rule("topic.partitions <= 3", "use at most 3 partitions"),
            rule("topic.configs[?'retention.ms'].orValue('') != '-1'", "delete old data"),
            rule("request.kind == 'KafkaTopic' && request.namespace == 'shop'", "wrong namespace"),
        )
    )


def plan(resource: KafkaTopic, rules: TopicRules, cluster: Any = LIVE) -> Plan[Any]:
    return decide(resource, cluster, Context(now=NOW, rules=rules, is_view_fresh=True), Surroundings(moves={}))


def say(decision: Plan[Any]) -> tuple[ConditionStatus, Reason, str]:
    ready = decision.status.condition(ConditionType.READY)
    return ready.status, ready.reason, ready.message


REFUSED = "a rule for topics refuses this: "


def test_a_topic_that_breaks_a_rule_is_not_created_and_leaves_no_intent(rules: TopicRules) -> None:
    refused = plan(kafka_topic({"partitions": 1, "replicationFactor": 2}), rules, view())
    assert say(refused) == (ConditionStatus.FALSE, Reason.POLICY_VIOLATION, f"{REFUSED}use at least 3 replicas")
    assert refused.steps == ()
    assert refused.status.topic_id is None
    assert refused.status.condition(ConditionType.STALLED) is not None
    corrected = kafka_topic({"partitions": 1, "replicationFactor": 3}, status=status_of(refused), generation=2)
    assert plan(corrected, rules, view()).steps != ()


def test_an_existing_topic_is_left_and_taken_over(rules: TopicRules) -> None:
    adopted = plan(kafka_topic(), rules)
    assert say(adopted)[:2] == (ConditionStatus.TRUE, Reason.RECONCILED), "it has two replicas"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"partitions": 4}, "use at most 3 partitions"),
        ({"config": {"retention.ms": "-1"}}, "delete old data"),
        ({"partitions": 3, "config": {"retention.ms": "-1"}}, "delete old data"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused_as_a_whole(
    rules: TopicRules, spec: dict[str, Any], message: str
) -> None:
    before = plan(kafka_topic(), rules)
    refused = plan(kafka_topic(spec, status=status_of(before), generation=2), rules)
    assert say(refused) == (ConditionStatus.FALSE, Reason.POLICY_VIOLATION, f"{REFUSED}{message}")
    assert refused.steps == ()
    assert refused.status.topic_id == before.status.topic_id
    assert refused.status.plan is not None, "the status shows what is asked for"


def test_another_replication_factor_is_a_change_and_the_other_fields_are_those_of_the_topic(tmp_path: Path) -> None:
    shrinks = read_topic_rules(
        write_rules(tmp_path, rule("old == null || topic.replicationFactor >= old.replicationFactor", "keep replicas"))
    )
    before = plan(kafka_topic(), shrinks)
    fewer = kafka_topic({"replicationFactor": 1}, status=status_of(before), generation=2)
    assert say(plan(fewer, shrinks))[1:] == (Reason.POLICY_VIOLATION, f"{REFUSED}keep replicas")
    more = kafka_topic({"replicationFactor": 3}, status=status_of(before), generation=2)
    assert plan(more, shrinks).steps != ()


def test_without_rules_nothing_is_refused() -> None:
    created = decide(kafka_topic({"replicationFactor": 1}), view(), Context(now=NOW), Surroundings(moves={}))
    assert created.steps != ()
