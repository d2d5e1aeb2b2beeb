"""The rights of the chart's roles: nobody has more than they need."""

import json

import pytest

from controller_operator.resources import KINDS
from devcluster.clusters.kubernetes import KubernetesApi
from tests.real.chart.charts import may, wait_until_may
from tests.unit.chart.rendering import RELEASE_NAMESPACE, render

OPERATOR = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-operator"
PLURALS = [f"{kind.definition.plural}.kontroller.dev" for kind in KINDS]


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *((verb, plural) for plural in PLURALS for verb in ("get", "list", "watch")),
        *(("patch", f"{plural}/status") for plural in PLURALS),
        *(
            ("patch", f"{kind}.kontroller.dev")
            for kind in ("kafkaclusters", "kafkatopics", "partitionreassignments", "featuresets")
        ),
        ("create", "partitionreassignments.kontroller.dev"),
        ("delete", "partitionreassignments.kontroller.dev"),
        ("delete", "preferredelections.kontroller.dev"),
        ("delete", "rebalanceplans.kontroller.dev"),
        ("create", "events"),
    ],
)
def test_the_operator_may_do_its_work(api: KubernetesApi, release: str, verb: str, resource: str) -> None:
    wait_until_may(api, OPERATOR, verb, resource, "payments")


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *((verb, plural) for plural in PLURALS for verb in ("update", "deletecollection")),
        *((verb, f"{plural}/status") for plural in PLURALS for verb in ("get", "update")),
        ("patch", "preferredelections.kontroller.dev"),
        ("patch", "rebalanceplans.kontroller.dev"),
        ("update", "kafkatopics.kontroller.dev/finalizers"),
        *(
            (verb, f"{kind}.kontroller.dev")
            for kind in ("kafkaclusters", "kafkatopics", "featuresets")
            for verb in ("create", "delete")
        ),
        ("create", "preferredelections.kontroller.dev"),
        ("create", "rebalanceplans.kontroller.dev"),
        ("get", "secrets"),
        ("list", "secrets"),
        ("get", "configmaps"),
        ("list", "pods"),
        ("create", "pods"),
        ("list", "namespaces"),
        ("list", "customresourcedefinitions.apiextensions.k8s.io"),
        ("patch", "customresourcedefinitions.apiextensions.k8s.io"),
        ("delete", "events"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("impersonate", "serviceaccounts"),
    ],
)
def test_the_operator_may_do_nothing_else(api: KubernetesApi, release: str, verb: str, resource: str) -> None:
    assert not may(api, OPERATOR, verb, resource, "payments")


def test_operators_agree_over_one_lease_and_touch_no_other(api: KubernetesApi, release: str) -> None:
    leases, own = "leases.coordination.k8s.io", "kontroller-operator"
    for verb in ("get", "patch"):
        wait_until_may(api, OPERATOR, verb, leases, RELEASE_NAMESPACE, own)
    wait_until_may(api, OPERATOR, "create", leases, RELEASE_NAMESPACE)
    assert not any(may(api, OPERATOR, verb, leases, RELEASE_NAMESPACE, own) for verb in ("delete", "update", "list"))
    assert not any(may(api, OPERATOR, verb, leases, RELEASE_NAMESPACE, "another") for verb in ("get", "patch"))
    assert not may(api, OPERATOR, "create", leases, "payments")


def test_the_operator_keeps_its_record_of_throttles_and_reads_no_other_config_map(
    api: KubernetesApi, release: str
) -> None:
    own = "kontroller-operator-throttles"
    for verb in ("get", "patch"):
        wait_until_may(api, OPERATOR, verb, "configmaps", RELEASE_NAMESPACE, own)
    wait_until_may(api, OPERATOR, "create", "configmaps", RELEASE_NAMESPACE)
    assert not any(may(api, OPERATOR, verb, "configmaps", RELEASE_NAMESPACE, own) for verb in ("delete", "list"))
    assert not any(may(api, OPERATOR, verb, "configmaps", RELEASE_NAMESPACE, "another") for verb in ("get", "patch"))


def test_an_operator_of_some_namespaces_has_no_rights_elsewhere(api: KubernetesApi) -> None:
    values = ("--set", "watchNamespaces={payments},crds.install=false,fullnameOverride=one")
    stdin = "\n---\n".join(json.dumps(each) for each in render(*values))
    api.kubectl("apply", "-f", "-", stdin=stdin)
    one = f"system:serviceaccount:{RELEASE_NAMESPACE}:one-operator"
    wait_until_may(api, one, "patch", "kafkatopics.kontroller.dev", "payments")
    assert not may(api, one, "get", "kafkatopics.kontroller.dev", "audit")
    assert not may(api, one, "get", "kafkatopics.kontroller.dev", RELEASE_NAMESPACE)
    api.kubectl("delete", "-f", "-", stdin=stdin)


def test_an_editor_has_topics_and_cannot_say_where_clusters_are(api: KubernetesApi, release: str) -> None:
    api.kubectl("create", "rolebinding", "ed", "--clusterrole=kontroller-edit", "--user=ed", "-n", "payments")
    api.kubectl("create", "rolebinding", "vi", "--clusterrole=kontroller-view", "--user=vi", "-n", "payments")
    api.kubectl("create", "rolebinding", "ann", "--clusterrole=kontroller-clusters", "--user=ann", "-n", "payments")
    wait_until_may(api, "ed", "create", "kafkatopics.kontroller.dev", "payments")
    assert not may(api, "ed", "create", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "ed", "patch", "kafkatopics.kontroller.dev/status", "payments")
    wait_until_may(api, "vi", "watch", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "vi", "create", "kafkatopics.kontroller.dev", "payments")
    wait_until_may(api, "ann", "create", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "ann", "create", "kafkaclusters.kontroller.dev", "audit")
