"""The Helm chart on a real API server: what it installs is accepted, and nobody may do more than they need."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from controller_admin.command_line import main as kontroller
from controller_core.process.settings import ControllerProcessSettings
from controller_operator.resources import KINDS
from devcluster.binaries import KUBERNETES_VERSION
from devcluster.kubernetes import CommandError, KubernetesApi
from devcluster.run_folder import RunFolder

PROJECT = Path(__file__).parents[2]
CHART = str(PROJECT / "charts" / "kontroller")
RELEASE_NAMESPACE = "kontroller-system"
OPERATOR = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-operator"
CONTROLLER_ON = ("--set", "controller.enabled=true", "--set", r"controller.zookeeper=zk-0:2181\,zk-1:2181/kafka")
CRDS = {kind.definition.crd_name for kind in KINDS}
PLURALS = [f"{kind.definition.plural}.kontroller.dev" for kind in KINDS]


@pytest.fixture(scope="module")
def api(servers_folder: RunFolder) -> Iterator[KubernetesApi]:
    """An API server of these tests' own, as the chart installs what a cluster has only once."""
    with KubernetesApi(servers_folder, name="kubernetes-chart") as cluster:
        for namespace in (RELEASE_NAMESPACE, "payments", "audit"):
            cluster.kubectl("create", "namespace", namespace)
        yield cluster


@contextmanager
def installed(api: KubernetesApi, *values: str) -> Iterator[str]:
    """The chart installed with `values`; gives what helm said, and removes everything at the end."""
    yield api.helm("install", "kontroller", CHART, "--namespace", RELEASE_NAMESPACE, *values)
    api.helm("uninstall", "kontroller", "--namespace", RELEASE_NAMESPACE)
    api.kubectl("delete", "crd", "--ignore-not-found", *CRDS)


@pytest.fixture(scope="module")
def release(api: KubernetesApi) -> Iterator[str]:
    """The chart with everything on; gives the notes."""
    with installed(api, *CONTROLLER_ON) as notes:
        yield notes


def rendered(api: KubernetesApi, *values: str) -> list[dict[str, Any]]:
    here = ("--namespace", RELEASE_NAMESPACE, "--kube-version", KUBERNETES_VERSION)
    text = api.helm("template", "kontroller", CHART, *here, *values)
    return [each for each in yaml.safe_load_all(text) if each]


def container(api: KubernetesApi, component: str, *values: str) -> dict[str, Any]:
    """The container of the rendered Deployment of a component."""
    for each in rendered(api, *CONTROLLER_ON, *values):
        if each["kind"] == "Deployment" and each["metadata"]["name"] == f"kontroller-{component}":
            found: dict[str, Any] = each["spec"]["template"]["spec"]["containers"][0]
            return found
    raise AssertionError(f"no Deployment of the {component}")


def may(api: KubernetesApi, who: str, verb: str, resource: str, namespace: str) -> bool:
    """Whether `who` may; the resource is written as `name[.group][/subresource]`."""
    whole, _, subresource = resource.partition("/")
    name, _, group = whole.partition(".")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": subresource, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "resourceAttributes": attributes},
    }
    answer = json.loads(api.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))
    allowed: bool = answer["status"]["allowed"]
    return allowed


def test_the_chart_has_nothing_that_helm_finds_fault_with(api: KubernetesApi) -> None:
    assert "0 chart(s) failed" in api.helm("lint", CHART, "--strict", *CONTROLLER_ON)


@pytest.mark.parametrize(
    "values",
    [
        (),
        CONTROLLER_ON,
        ("--set", "watchNamespaces={payments,audit}"),
        ("--set", "operator.serviceAccount.create=false,rbac.create=false"),
        ("--set", "imagePullSecrets[0].name=pull,operator.nodeSelector.disk=ssd,operator.podAnnotations.a=b"),
    ],
    ids=["defaults", "controller", "namespaces", "no-rbac", "scheduling"],
)
def test_the_api_server_takes_every_object_of_the_chart(api: KubernetesApi, values: tuple[str, ...]) -> None:
    objects = rendered(api, *values)
    stdin = "\n---\n".join(json.dumps(each) for each in objects)
    printed = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=stdin)
    assert len(printed.splitlines()) == len(objects)


def test_everything_carries_the_labels_that_say_where_it_comes_from(api: KubernetesApi) -> None:
    for each in rendered(api, *CONTROLLER_ON):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "kontroller"
        assert labels["app.kubernetes.io/instance"] == "kontroller"
        assert labels["helm.sh/chart"].startswith("kontroller-")


def test_the_chart_has_the_definitions_of_the_folder_crds(api: KubernetesApi) -> None:
    files = (yaml.safe_load(path.read_text()) for path in (PROJECT / "crds").glob("*.yaml"))
    specs = {each["metadata"]["name"]: each["spec"] for each in files}
    in_chart = [each for each in rendered(api) if each["kind"] == "CustomResourceDefinition"]
    assert {each["metadata"]["name"]: each["spec"] for each in in_chart} == specs
    assert all(each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for each in in_chart)
    assert not [each for each in rendered(api, "--set", "crds.install=false") if "Custom" in each["kind"]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("--set", "operator.replicas=2"), "replicas"),
        (("--set", "controller.replicas=2"), "replicas"),
        (("--set", "watchNamespaces={Payments}"), "watchNamespaces"),
        (("--set", "controller.enabled=true"), "/controller/zookeeper"),
        (("--set", "controller.zookeeper=zk"), "/controller/zookeeper"),
        (("--set", "image.repository="), "/image/repository"),
    ],
)
def test_a_wrong_value_is_refused(api: KubernetesApi, values: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        rendered(api, *values)


def test_the_schema_describes_every_value(api: KubernetesApi) -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())
    values = yaml.safe_load(api.helm("show", "values", CHART))

    def undescribed(known: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[str]:
        for name, value in given.items():
            field = known.get("properties", {}).get(name, {})
            if not field.get("description"):
                yield f"{path}.{name}"
            if "properties" in field:
                yield from undescribed(field, value, f"{path}.{name}")

    assert list(undescribed(schema, values, "")) == []


def test_the_options_of_the_controller_are_ones_that_it_has(api: KubernetesApi) -> None:
    run = container(api, "controller")
    assert run["command"] == ["kontroller"]
    assert run["args"][:2] == ["controller", "run"]
    command = typer.main.get_command(kontroller)
    for word in run["args"][:2]:
        command = command.commands[word]  # type: ignore[attr-defined]  # a group, by the assertion above
    known = {option for parameter in command.params for option in parameter.opts}
    assert {argument.split("=")[0] for argument in run["args"][2:]} <= known


def test_the_controller_can_use_the_settings_that_the_chart_gives(
    api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = container(api, "controller")
    for variable in run["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], variable["value"].replace("$(POD_IP)", "10.1.2.3"))
    given = dict(argument.removeprefix("--").split("=", 1) for argument in run["args"][2:])
    settings = ControllerProcessSettings(**{name.replace("-", "_"): value for name, value in given.items()})
    assert settings.zookeeper == "zk-0:2181,zk-1:2181/kafka"
    assert (settings.endpoint.host, settings.endpoint.port) == ("10.1.2.3", 9093)
    assert (settings.metrics_host, settings.metrics_port) == ("0.0.0.0", 9404)


def test_the_operator_is_told_which_namespaces_to_watch(api: KubernetesApi) -> None:
    assert "--all-namespaces" in container(api, "operator")["args"]
    listed = container(api, "operator", "--set", "watchNamespaces={payments,audit}")["args"]
    assert [argument for argument in listed if "namespace" in argument] == ["--namespace=payments", "--namespace=audit"]


@pytest.mark.parametrize("component", ["operator", "controller"])
def test_the_pods_meet_the_restricted_standard(api: KubernetesApi, component: str) -> None:
    api.kubectl("label", "namespace", "audit", "--overwrite", "pod-security.kubernetes.io/enforce=restricted")

    def create(*values: str) -> str:
        deployment = next(
            each
            for each in rendered(api, *CONTROLLER_ON, *values)
            if each["kind"] == "Deployment" and each["metadata"]["name"].endswith(component)
        )
        template = deployment["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": template["spec"]}
        return api.kubectl("create", "--dry-run=server", "--namespace", "audit", "-f", "-", stdin=json.dumps(pod))

    assert "pod/probe created" in create()
    with pytest.raises(CommandError, match="violates PodSecurity"):
        create("--set", "securityContext.allowPrivilegeEscalation=true")


def test_the_notes_say_what_to_do_next(api: KubernetesApi, release: str) -> None:
    assert "rollout status deployment/kontroller-operator" in release
    assert "rollout status deployment/kontroller-controller" in release
    proposed = release.split("<<END\n")[1].split("END")[0]
    printed = api.kubectl("apply", "--dry-run=server", "-n", RELEASE_NAMESPACE, "-f", "-", stdin=proposed)
    assert "kafkacluster.kontroller.dev/my-cluster created" in printed


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *((verb, plural) for plural in PLURALS for verb in ("get", "list", "watch", "patch")),
        *(("patch", f"{plural}/status") for plural in PLURALS),
        ("update", "kafkatopics.kontroller.dev/finalizers"),
        ("create", "partitionreassignments.kontroller.dev"),
        ("delete", "partitionreassignments.kontroller.dev"),
        ("delete", "preferredelections.kontroller.dev"),
        ("create", "events"),
    ],
)
def test_the_operator_may_do_its_work(api: KubernetesApi, release: str, verb: str, resource: str) -> None:
    assert may(api, OPERATOR, verb, resource, "payments")


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        *((verb, plural) for plural in PLURALS for verb in ("update", "deletecollection")),
        *(
            (verb, f"{kind}.kontroller.dev")
            for kind in ("kafkaclusters", "kafkatopics", "featuresets")
            for verb in ("create", "delete")
        ),
        ("create", "preferredelections.kontroller.dev"),
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


def test_an_operator_of_some_namespaces_has_no_rights_elsewhere(api: KubernetesApi) -> None:
    values = ("--set", "watchNamespaces={payments},crds.install=false,fullnameOverride=one")
    stdin = "\n---\n".join(json.dumps(each) for each in rendered(api, *values))
    api.kubectl("apply", "-f", "-", stdin=stdin)
    one = f"system:serviceaccount:{RELEASE_NAMESPACE}:one-operator"
    assert may(api, one, "patch", "kafkatopics.kontroller.dev", "payments")
    assert not may(api, one, "get", "kafkatopics.kontroller.dev", "audit")
    assert not may(api, one, "get", "kafkatopics.kontroller.dev", RELEASE_NAMESPACE)
    api.kubectl("delete", "-f", "-", stdin=stdin)


def test_an_editor_has_topics_and_cannot_say_where_clusters_are(api: KubernetesApi, release: str) -> None:
    api.kubectl("create", "rolebinding", "ed", "--clusterrole=kontroller-edit", "--user=ed", "-n", "payments")
    api.kubectl("create", "rolebinding", "vi", "--clusterrole=kontroller-view", "--user=vi", "-n", "payments")
    api.kubectl("create", "rolebinding", "ann", "--clusterrole=kontroller-clusters", "--user=ann", "-n", "payments")
    assert may(api, "ed", "create", "kafkatopics.kontroller.dev", "payments")
    assert not may(api, "ed", "create", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "ed", "patch", "kafkatopics.kontroller.dev/status", "payments")
    assert may(api, "vi", "watch", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "vi", "create", "kafkatopics.kontroller.dev", "payments")
    assert may(api, "ann", "create", "kafkaclusters.kontroller.dev", "payments")
    assert not may(api, "ann", "create", "kafkaclusters.kontroller.dev", "audit")


def test_the_roles_of_users_join_the_cluster_s_own(api: KubernetesApi) -> None:
    def joined(*values: str) -> dict[str, set[str]]:
        prefix = "rbac.authorization.k8s.io/aggregate-to-"
        return {
            each["metadata"]["name"]: {
                label.removeprefix(prefix) for label in each["metadata"]["labels"] if label.startswith(prefix)
            }
            for each in rendered(api, *values)
            if each["kind"] == "ClusterRole"
        }

    assert joined() == {
        "kontroller-operator": set(),
        "kontroller-view": {"view", "edit", "admin"},
        "kontroller-edit": {"edit", "admin"},
        "kontroller-clusters": set(),
    }
    assert not any(joined("--set", "rbac.aggregate=false").values())


@pytest.fixture
def fresh_api(servers_folder: RunFolder) -> Iterator[KubernetesApi]:
    """An API server with nothing on it, for what installs and uninstalls by itself."""
    with KubernetesApi(servers_folder, name="kubernetes-chart-life") as cluster:
        yield cluster


def test_an_upgrade_changes_what_runs_and_an_uninstall_leaves_the_resources(fresh_api: KubernetesApi) -> None:
    api = fresh_api
    where = ("--namespace", RELEASE_NAMESPACE)
    api.helm("install", "kontroller", CHART, *where, "--create-namespace")
    api.kubectl("wait", "--for=condition=Established", "crd", *CRDS)
    assert deployments(api) == {"kontroller-operator"}
    api.kubectl("apply", "-f", "-", *where, stdin=TOPIC)

    api.helm("upgrade", "kontroller", CHART, *where, *CONTROLLER_ON)
    assert deployments(api) == {"kontroller-operator", "kontroller-controller"}

    api.helm("uninstall", "kontroller", *where)
    assert deployments(api) == set()
    assert api.get("kafkatopic", "orders", *where)["spec"]["partitions"] == 1
    left = [role["metadata"]["name"] for role in api.get("clusterroles")["items"] if "kontroller" in str(role)]
    assert left == []


def test_an_uninstall_takes_the_definitions_along_when_they_are_not_to_be_kept(fresh_api: KubernetesApi) -> None:
    where = ("--namespace", RELEASE_NAMESPACE)
    fresh_api.helm("install", "kontroller", CHART, *where, "--create-namespace", "--set", "crds.keep=false")
    names = {each["metadata"]["name"] for each in fresh_api.get("crds")["items"]}
    assert names == CRDS
    fresh_api.helm("uninstall", "kontroller", *where, "--wait")
    assert fresh_api.get("crds")["items"] == []


def deployments(api: KubernetesApi) -> set[str]:
    return {each["metadata"]["name"] for each in api.get("deployments", "--all-namespaces")["items"]}


TOPIC = json.dumps(
    {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "orders"},
        "spec": {"clusterRef": {"name": "demo"}, "partitions": 1, "replicationFactor": 1},
    }
)
