"""The author of a move cannot approve it: the chart's policy on a real API server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.running.processes import wait_until
from tests.real.chart.charts import install_chart
from tests.unit.chart.rendering import RELEASE_NAMESPACE

POLICY = (
    "--set", "approvalPolicy.enabled=true,approvalPolicy.required=true",
    "--set", r"approvalPolicy.namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=payments",
)  # fmt: skip
AUTHOR, APPROVER = "author", "approver"
OPERATOR = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-operator"
HASH, OTHER_HASH = "0123456789abcdef", "fedcba9876543210"
NOT_YOURS = "only somebody with the verb approve"


class Team:
    """The users of a namespace."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    def create(self, who: str, name: str, **spec: Any) -> None:
        moved = [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]
        self.create_other(who, "PartitionReassignment", name, partitions=moved, **spec)

    def create_other(self, who: str, kind: str, name: str, **spec: Any) -> None:
        body = {
            "apiVersion": "kontroller.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {"clusterRef": {"name": "demo"}, **spec},
        }
        self._api.kubectl("create", "--as", who, "-f", "-", stdin=json.dumps(body))

    def change(self, who: str, name: str, kind: str = "partitionreassignment", **spec: Any) -> None:
        patch = ("--type=merge", "-p", json.dumps({"spec": spec}))
        self._api.kubectl("patch", "--as", who, kind, name, "-n", self._namespace, *patch)

    def delete(self, name: str) -> None:
        self._api.kubectl("delete", "partitionreassignment", name, "-n", self._namespace)


@pytest.fixture(scope="module")
def teams(api: KubernetesApi) -> Iterator[dict[str, Team]]:
    with install_chart(api, *POLICY):
        teams = {namespace: Team(api, namespace) for namespace in ("payments", "audit")}
        for namespace in teams:
            for who, roles in {AUTHOR: ("view", "edit"), APPROVER: ("approve",)}.items():
                for role in roles:
                    binding = (f"{who}-{role}", f"--clusterrole=kontroller-{role}", f"--user={who}", "-n", namespace)
                    api.kubectl("create", "rolebinding", *binding)
        wait_until(lambda: is_refused(teams["payments"]), "the policy is in force")
        yield teams


def is_refused(team: Team) -> bool:
    """Return True if the policy refuses it. Until then, definitions may not be served, nor rights be known."""
    try:
        team.create(AUTHOR, "probe", approval="Required", approvedPlan=HASH)
    except CommandError as error:
        return "set after the creation" in str(error)
    team.delete("probe")
    return False


def test_the_author_asks_for_approval_and_cannot_give_it(teams: dict[str, Team]) -> None:
    team = teams["payments"]
    team.create(AUTHOR, "asked", approval="Required")
    with pytest.raises(CommandError, match=NOT_YOURS):
        team.change(AUTHOR, "asked", approvedPlan=HASH)
    team.change(APPROVER, "asked", approvedPlan=HASH)
    with pytest.raises(CommandError, match=NOT_YOURS):
        team.change(AUTHOR, "asked", approvedPlan=OTHER_HASH)
    team.change(AUTHOR, "asked", suspend=True)
    team.change(AUTHOR, "asked", approvedPlan=None)


TOPIC: dict[str, Any] = {"partitions": 1, "replicationFactor": 1}
UNCLEAN: dict[str, Any] = {"topics": ["orders"], "electionType": "Unclean", "acknowledgeDataLoss": True}


@pytest.mark.parametrize(("kind", "spec"), [("KafkaTopic", TOPIC), ("PreferredElection", UNCLEAN)])
def test_topics_and_unclean_elections_are_approved_by_others_as_well(
    teams: dict[str, Team], kind: str, spec: dict[str, Any]
) -> None:
    team = teams["payments"]
    with pytest.raises(CommandError, match="set approval to Required"):
        team.create_other(AUTHOR, kind, "unasked", **spec)
    with pytest.raises(CommandError, match="set after the creation"):
        team.create_other(AUTHOR, kind, "at-once", **spec, approval="Required", approvedPlan=HASH)
    team.create_other(AUTHOR, kind, "asked", **spec, approval="Required")
    with pytest.raises(CommandError, match=NOT_YOURS):
        team.change(AUTHOR, "asked", kind, approvedPlan=HASH)
    with pytest.raises(CommandError, match="cannot be changed to Automatic"):
        team.change(AUTHOR, "asked", kind, approval="Automatic")
    team.change(APPROVER, "asked", kind, approvedPlan=HASH)


def test_an_election_of_preferred_leaders_needs_no_approval(teams: dict[str, Team]) -> None:
    teams["payments"].create_other(AUTHOR, "PreferredElection", "preferred", topics=["orders"])


def test_nobody_gets_round_it(teams: dict[str, Team]) -> None:
    team = teams["payments"]
    with pytest.raises(CommandError, match="set after the creation"):
        team.create(AUTHOR, "approved-at-once", approval="Required", approvedPlan=HASH)
    with pytest.raises(CommandError, match="set approval to Required"):
        team.create(AUTHOR, "unasked")
    team.create(AUTHOR, "firm", approval="Required")
    with pytest.raises(CommandError, match="cannot be changed to Automatic"):
        team.change(AUTHOR, "firm", approval="Automatic")
    with pytest.raises(CommandError, match="forbidden"):
        team.create(APPROVER, "of-my-own", approval="Required")


def test_the_operator_makes_moves_of_topics_without_approval(teams: dict[str, Team]) -> None:
    teams["payments"].create(OPERATOR, "of-a-topic")


def test_other_namespaces_are_as_before(teams: dict[str, Team]) -> None:
    teams["audit"].create(AUTHOR, "unasked", approval="Required", approvedPlan=HASH)


@pytest.mark.parametrize("hash_", ["", "0123", "0123456789ABCDEF", HASH + "0", "g" * 16])
def test_what_is_no_hash_is_refused(teams: dict[str, Team], hash_: str) -> None:
    with pytest.raises(CommandError, match="approvedPlan"):
        teams["audit"].create(AUTHOR, f"wrong-{len(hash_)}", approvedPlan=hash_)
