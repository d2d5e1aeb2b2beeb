"""KafkaRebalances of Strimzi become RebalancePlans that move nothing by themselves, and nothing twice."""

from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kontroller.command_line import main
from kontroller.importing.sources.strimzi_rebalances import convert_excluded_topics


def run_import(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> tuple[list[dict[str, Any]], str]:
    """Return the objects of the output, and the report without the command's name."""
    text = yaml.safe_dump_all(objects)
    result = CliRunner().invoke(main, ["import", "--from", "-", *arguments], input=text)
    return [each for each in yaml.safe_load_all(result.stdout) if each], result.stderr.replace(
        "kontroller import: ", ""
    )


def write_rebalance(
    *,
    spec: dict[str, Any] | None = None,
    state: str | None = None,
    name: str = "even",
    version: str = "v1",
    **metadata: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": f"kafka.strimzi.io/{version}",
        "kind": "KafkaRebalance",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": "main"}, **metadata},
        "spec": spec or {},
        **({"status": {"conditions": [{"type": state, "status": "True"}]}} if state else {}),
    }


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@pytest.mark.parametrize("state", [None, "New", "NotReady", "PendingProposal", "ProposalReady", "Stopped"])
def test_moves_that_have_not_begun_become_a_plan_that_needs_approval(state: str | None, version: str) -> None:
    found, report = run_import(write_rebalance(state=state, version=version))
    assert found == [
        {
            "apiVersion": "kontroller.dev/v1alpha1",
            "kind": "RebalancePlan",
            "metadata": {"name": "even"},
            "spec": {"clusterRef": {"name": "main"}, "mode": "rebalance", "approval": "Required"},
        }
    ]
    assert report == "0 topics and 1 KafkaRebalances imported; left out: none\n"


@pytest.mark.parametrize(
    ("state", "annotations", "reason"),
    [
        ("Rebalancing", {}, "Strimzi carries it out now: wait until it is Ready, or stop it"),
        ("ProposalReady", {"strimzi.io/rebalance": "approve"}, "Strimzi carries it out next: wait until it is Ready"),
        ("ProposalReady", {"strimzi.io/rebalance-auto-approval": "true"}, "Strimzi carries it out next"),
        ("ReconciliationPaused", {}, "its status does not say if Strimzi has begun"),
        (None, {"strimzi.io/rebalance-template": "true"}, "it is a template (strimzi.io/rebalance-template)"),
    ],
)
def test_moves_under_way_and_templates_are_refused(state: str | None, annotations: dict[str, str], reason: str) -> None:
    found, report = run_import(write_rebalance(state=state, annotations=annotations))
    assert found == []
    assert "standard input:1: KafkaRebalance even has no RebalancePlan: " in report
    assert reason in report


def test_moves_that_strimzi_has_carried_out_do_not_run_again() -> None:
    found, report = run_import(write_rebalance(state="Ready", spec={"rebalanceDisk": True}))
    assert found == []
    assert report.splitlines() == [
        "standard input:1: KafkaRebalance even is left out: it is carried out already",
        "0 topics imported; left out: 1 carried out already",
    ]


def test_a_copy_without_a_status_of_moves_that_are_carried_out_is_refused() -> None:
    found, report = run_import(write_rebalance(state="Ready"), write_rebalance(namespace="shop"))
    assert found == []
    assert "KafkaRebalance even has no RebalancePlan: it is also declared at standard input:1" in report


def test_the_users_own_cluster_and_namespace_go_before_those_of_the_file() -> None:
    (found,), _ = run_import(write_rebalance(namespace="shop"), arguments=("--cluster", "other", "-n", "kafka"))
    assert found["spec"]["clusterRef"] == {"name": "other"}
    assert found["metadata"]["namespace"] == "kafka"


def test_the_clusters_namespace_is_written_if_it_is_another() -> None:
    (found,), _ = run_import(write_rebalance(namespace="shop"), arguments=("--cluster-namespace", "kafka"))
    assert found["spec"]["clusterRef"] == {"name": "main", "namespace": "kafka"}


def test_objects_of_one_name_are_two_plans_only_in_two_namespaces() -> None:
    both = write_rebalance(namespace="a"), write_rebalance(namespace="b")
    assert [each["metadata"]["namespace"] for each in run_import(*both)[0]] == ["a", "b"]
    merged, report = run_import(*both, arguments=("--namespace", "c"))
    assert (merged, report.count("keep or rename one of them")) == ([], 2)


def test_a_name_that_is_too_long_for_kubernetes_is_cut_and_gets_a_hash() -> None:
    (found,), report = run_import(write_rebalance(name="a" * 254))
    name = found["metadata"]["name"]
    assert (len(name), name[:237]) == (253, "a" * 236 + "-")
    assert f"Kubernetes refuses its name, so the RebalancePlan is {name}" in report


def test_more_brokers_than_a_plan_may_have_are_refused() -> None:
    found, report = run_import(write_rebalance(spec={"mode": "add-brokers", "brokers": list(range(101))}))
    assert found == []
    assert "KafkaRebalance even has no RebalancePlan: spec.brokers: " in report


@pytest.mark.parametrize("written", ["3", {"id": 3}, [[3]], ["three"], "1,2"])
def test_brokers_that_are_no_list_of_ids_are_refused(written: object) -> None:
    found, report = run_import(write_rebalance(spec={"mode": "remove-brokers", "brokers": written}))
    assert found == []
    assert "brokers is no list of broker ids: write numbers, such as [3, 4]" in report


def test_an_expression_without_an_equal_keeps_no_topic_out_of_a_plan_by_mistake() -> None:
    found, report = run_import(write_rebalance(spec={"excludedTopics": "(?!orders).*"}))
    assert found == []
    assert (
        "excludedTopics (?!orders).* has no equal among patterns with * and ?: write names and .* with | between them"
    ) in report


@pytest.mark.parametrize(
    ("expression", "patterns"),
    [
        ("orders", ("orders",)),
        ("^orders$", ("orders",)),
        ("orders-.*", ("orders-*",)),
        (".*", ("*",)),
        ("__.+", ("__?*",)),
        (r"audit\.log", ("audit.log",)),
        ("audit[.]log", ("audit.log",)),
        ("audit.log", ("audit?log",)),
        ("a|b|a", ("a", "b")),
        ("^a|b$", ("a", "b")),
        ("(a|b-.*)", ("a", "b-*")),
        ("^(?:a|b)$", ("a", "b")),
        (r"A_1\-.\.x.*", ("A_1-?.x*",)),
    ],
)
def test_an_expression_becomes_patterns_that_match_the_same_topics(expression: str, patterns: tuple[str, ...]) -> None:
    assert convert_excluded_topics(expression) == patterns


@pytest.mark.parametrize(
    "expression",
    [
        "", "a*", "a?", "a+", ".?", ".*?", ".*+", ".{3}", "[ab]", "[a.]", "(?i)a", "(?!a).*", r"\d", r"\Qa\E", r"\.*",
        "[.]*", "a|", "|a", "(a|b)-.*", "(a)|b", "((a))", "a\n", "a b", "a^", "$a", "ä", "a,b", "(a", "a)", r"a\|b", "a[",
    ],
)  # fmt: skip
def test_other_expressions_have_no_patterns(expression: str) -> None:
    assert convert_excluded_topics(expression) is None
