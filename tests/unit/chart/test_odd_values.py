"""Values and names as they occur in large clusters: long ones, similar ones, empty ones where there was a value."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import (
    ALL_OF_IT,
    CHART,
    EVERYTHING,
    KUBERNETES,
    MAY_BE_NOTHING,
    SELF_CONTAINED,
    Object,
    default_values,
    find_object,
    helm,
    pods,
    render,
    run_as_pod,
)

pytestmark = pytest.mark.needs(Part.HELM)


def find_optional(known: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[str]:
    """Values that have a default and that the schema would let go."""
    for name, value in given.items():
        if name in MAY_BE_NOTHING or (value in ("", [], {}) and not isinstance(value, bool)):
            continue
        if name not in known.get("required", []):
            yield f"{path}.{name}"
        if isinstance(value, dict):
            yield from find_optional(known["properties"][name], value, f"{path}.{name}")


def names(objects: list[Object]) -> set[tuple[str, str]]:
    """Return the kind and name of each object, which must be unique in a namespace."""
    return {(each["kind"], each["metadata"]["name"]) for each in objects if each["kind"] != "CustomResourceDefinition"}


def test_a_value_that_is_nothing_is_asked_for_by_name() -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())
    assert list(find_optional(schema, default_values(), "")) == []


def may_be_null(known: dict[str, Any], given: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the names of the values that the schema lets go."""
    for name, value in given.items():
        if name not in known.get("required", []):
            yield f"{path}{name}"
        elif isinstance(value, dict):
            yield from may_be_null(known["properties"][name], value, f"{path}{name}.")


def nulls(found: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that are null."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield from nulls(value, f"{path}.{name}")
    elif isinstance(found, list):
        for number, value in enumerate(found):
            yield from nulls(value, f"{path}.{number}")
    elif found is None:
        yield path


def test_every_value_that_may_be_null_leaves_its_field_out() -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())
    optional = list(may_be_null(schema, default_values()))
    assert {"podSecurityContext", "securityContext", "operator.resources", "kafka.image.digest"} <= set(optional)
    objects = render(*ALL_OF_IT, "--set", ",".join(f"{name}=null" for name in optional))
    assert [f"{each['kind']}{path}" for each in objects for path in nulls(each)] == []
    usual = render(*ALL_OF_IT)
    assert names(objects) == names(usual)
    assert [each for each in objects if each["kind"] == "Service"] == [
        each for each in usual if each["kind"] == "Service"
    ]
    for pod in pods(objects):
        assert "securityContext" not in pod["spec"]
        assert "securityContext" not in pod["spec"]["containers"][0]


@pytest.mark.parametrize(("gone", "said"), [("kafka.drain", "'drain'"), ("image.pullPolicy", "'pullPolicy'")])
def test_what_the_chart_cannot_do_without_is_named_by_helm(gone: str, said: str) -> None:
    with pytest.raises(CommandError, match=rf"missing property {said}"):
        render(*SELF_CONTAINED, "--set", f"{gone}=null")


def test_a_release_may_have_any_name_that_helm_takes() -> None:
    assert render(*EVERYTHING, release="team.payments.kafka")
    with pytest.raises(CommandError, match="begin with 1st-kontroller: set fullnameOverride"):
        render(*EVERYTHING, release="1st")
    assert render(*EVERYTHING, "--set", "fullnameOverride=first", release="1st")


def test_a_release_s_name_that_looks_like_a_number_stays_a_text() -> None:
    objects = render(*EVERYTHING, "--set", "fullnameOverride=first", release="1e3")
    selectors = [each["spec"]["selector"] for each in objects if each["kind"] == "Service"]
    labels = [pod["metadata"]["labels"] for pod in pods(objects)]
    assert {each["app.kubernetes.io/instance"] for each in (*selectors, *labels)} == {"1e3"}


class _Loader(yaml.SafeLoader):
    """A reader with the types of both YAML 1.1 and 1.2. To PyYAML 1e3 is a text, to Kubernetes it is a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), list("-+.0123456789")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+|0o[0-7]+"), list("-+0123456789"))


def list_scalars(*nodes: Any) -> Iterator[yaml.ScalarNode]:
    """Yield all keys and values that are no lists or maps."""
    for node in nodes:
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.CollectionNode):
            yield from list_scalars(*node.value)
        elif isinstance(node, tuple):
            yield from list_scalars(*node)


def list_texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value that are not addresses."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_texts(each)
    elif "://" not in value:
        yield value


def test_every_name_that_looks_like_another_type_is_a_text() -> None:
    names = {
        "fullnameOverride": "off",
        "nameOverride": "7101",
        "watchNamespaces": ["no", "0x1f"],
        "imagePullSecrets": [{"name": "7102"}],
        "operator.serviceAccount.name": "7103",
        "operator.priorityClassName": "yes",
        "operator.connectionSecrets": ["7104", ["7105", "7106"]],
        "webhook.certificate.secretName": "7107",
        "webhook.certificate.caBundle": "1234",
        "webhook.clientCa.configMap": "7108",
        "controller.connectionSecrets": ["7109"],
        "controller.journal.token.secretName": "7110",
        "controller.journal.topic.name": "7111",
        "controller.journal.persistence.storageClassName": "0b1",
        "zookeeper.tls.secretName": "7112",
        "zookeeper.persistence.storageClassName": "2e3",
        "kafka.connectionSecrets": ["7113"],
        "kafka.persistence.storageClassName": "on",
        "history.claimName": "0o17",
        "history.connectionSecrets": ["7115"],
        "history.journalTokens": [{"journal": "http://a/journal", "secretName": "7116"}],
        "history.journalTls": {"caSecret": "7117", "certificateSecret": "7118"},
        "alarms.claimName": "1.5",
        "alarms.connectionSecrets": ["7119"],
        "alarms.journalTls": {"caSecret": "7120", "certificateSecret": "7121"},
        "monitoring.http": {"certificateSecret": "7122", "clientCaSecret": "7123", "tokenSecret": "7124"},
        "commonLabels": {"team": "7125"},
        "commonAnnotations": {"owner": "7126"},
    }
    others = (
        "controller.journal.token.create=false,controller.journal.topic.bootstrapServers=a:1,"
        "history.topic.name=a,history.topic.bootstrapServers=a:1,alarms.topic.name=a,alarms.topic.bootstrapServers=a:1,"
        "webhook.clientCa.names={a}"
    )
    options = [word for name, value in names.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    options += ["--set-string", "kafka.scramUsers.secretName=7114"]
    text = helm("template", "7127", CHART, "--namespace", "1e3", *KUBERNETES, *ALL_OF_IT, "--set", others, *options)
    odd = {"7114", "7127", "1e3", *list_texts(list(names.values()))}
    found = [each for each in list_scalars(*yaml.compose_all(text, _Loader)) if each.value in odd]
    assert [str(each.start_mark) for each in found if each.tag != "tag:yaml.org,2002:str"] == []
    assert {each.value for each in found} == odd


def test_a_folder_of_zookeeper_may_end_with_a_colon() -> None:
    for pod in pods(render(*EVERYTHING, "--set", "kafka.zookeeper=zk:2181/a:,controller.zookeeper=zk:2181/a:")):
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            assert all(isinstance(argument, str) for argument in container.get("args", ()))


def test_releases_whose_long_names_begin_alike_share_a_namespace() -> None:
    alike = [f"payments-production-europe-west-kafka-{each}" for each in ("blue", "green")]
    blue, green = (render(*EVERYTHING, release=each) for each in alike)
    assert names(blue) & names(green) == set()
    selectors = [each["spec"]["selector"] for each in blue if each["kind"] == "Service"]
    assert {each["app.kubernetes.io/instance"] for each in selectors} == {alike[0]}


def test_releases_of_one_name_are_in_two_namespaces() -> None:
    policies = "approvalPolicy.enabled=true,deletionGuard.enabled=true"
    webhook = f"{policies},webhook.enabled=true,webhook.certificate.secretName=a,webhook.certificate.caBundle=YQ=="
    further = "crds.install=false,rbac.userRoles=false,watchNamespaces={audit}"
    first = render(*EVERYTHING, "--set", webhook)
    second = render(*EVERYTHING, "--set", f"{webhook},{further}", namespace="audit")
    of_all = [each for each in second if "namespace" not in each["metadata"]]
    assert {each["kind"] for each in of_all} == {
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
    policy_names = {each["metadata"]["name"] for each in of_all if each["kind"] == "ValidatingAdmissionPolicy"}
    bound_names = {each["spec"]["policyName"] for each in of_all if each["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert policy_names == bound_names
    assert names(of_all) & names(first) == set()


def render_setting(component: str, name: str, value: object, folder: Path) -> str:
    """Return the line of a setting in the configuration of brokers or ZooKeeper, with a file of values."""
    values = folder / "values.yaml"
    values.write_text(f"{component}: {{config: {{{name}: {value}}}}}\n")
    data = find_object(render(*SELF_CONTAINED, "--values", str(values)), "ConfigMap", f"kontroller-{component}")["data"]
    (line,) = (each for each in "\n".join(data.values()).splitlines() if each.startswith(f"{name}="))
    return line


@pytest.mark.parametrize(
    ("component", "name", "value"),
    [
        ("kafka", "replica.fetch.backoff.ms", "0"),
        ("zookeeper", "autopurge.purgeInterval", "0"),
        ("zookeeper", "quorumListenOnAllIPs", "false"),
    ],
)
def test_a_setting_that_is_zero_or_false_replaces_the_chart_s_default(
    component: str, name: str, value: str, tmp_path: Path
) -> None:
    assert render_setting(component, name, value, tmp_path) == f"{name}={value}"


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**53, -(2**53)])
def test_a_number_that_helm_rounds_is_refused_unless_it_is_in_quotes(
    component: str, number: int, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=rf"{component}\.config: Helm rounds .* that of a: write it in quotes"):
        render_setting(component, "a", number, tmp_path)
    (tmp_path / "quoted").mkdir()
    assert render_setting(component, "a", f'"{number}"', tmp_path / "quoted") == f"a={number}"


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_the_largest_number_that_helm_does_not_round_stays_as_it_is(component: str, tmp_path: Path) -> None:
    assert render_setting(component, "a", 2**53 - 1, tmp_path) == f"a={2**53 - 1}"


@pytest.mark.parametrize(
    "name",
    [
        "controller.limits.connectionsMaxIdleMs",
        "controller.limits.maxConnectionsPerAddress",
        "controller.limits.queuedMaxRequestBytes",
        "controller.limits.queuedMaxRequests",
        "controller.audit.fileBytes",
        "controller.journal.segmentBytes",
        "controller.journal.retentionBytes",
        "controller.journal.retentionHours",
        "history.journalCaps.fileBytes",
        "history.journalCaps.journalBytes",
        "alarms.journalCaps.fileBytes",
    ],
)
def test_a_size_that_helm_would_round_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match=f"/{name.replace('.', '/')}"):
        render(*EVERYTHING, "--set", f"{name}={2**63 - 1}")


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_options_of_java_are_beside_those_of_the_chart(component: str, tmp_path: Path) -> None:
    own = f"{component}.extraEnv[0].name=KAFKA_OPTS,{component}.extraEnv[0].value=-Dof=ours"
    objects = render(*SELF_CONTAINED, "--set", f"zookeeper.juteMaxbufferBytes=4194304,{own}")
    (container,) = find_object(objects, "StatefulSet", f"kontroller-{component}")["spec"]["template"]["spec"][
        "containers"
    ]
    assert [each["name"] for each in container["env"]].count("KAFKA_OPTS") == 1
    (tmp_path / "server.properties").write_text("")
    script = [
        part.replace("/etc/kafka/", f"{tmp_path}/")
        .replace("/tmp/server.properties", f"{tmp_path}/made.properties")
        .replace("/var/lib/zookeeper", str(tmp_path))
        for part in container["command"]
    ]
    run_as_pod(script, f"kontroller-{component}-0", tmp_path, {"KAFKA_OPTS": "-Dof=ours"})
    said = (tmp_path / "arguments.kafka-opts").read_text().split()
    assert {"-Djute.maxbuffer=4194304", "-Dof=ours"} <= set(said)
