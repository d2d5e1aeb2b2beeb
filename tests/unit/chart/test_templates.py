"""The objects that the chart renders, and the values that Helm refuses because they cannot work."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_core.rules.topic_rules import read_topic_rules
from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import (
    CHART,
    COMPONENTS,
    CONTROLLER_FOR_SOME,
    CONTROLLER_ON,
    PROJECT,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    find_object,
    helm,
    render,
    workload,
)

pytestmark = pytest.mark.needs(Part.HELM)


def test_the_examples_for_clusters_without_zookeeper_are_the_operator_alone_and_the_login_of_its_secret() -> None:
    folder = PROJECT / "examples" / "helm"
    values = ("--values", str(folder / "without-zookeeper-values.yaml"))
    assert "secret:" not in yaml.safe_dump(render(*values))
    objects = render(*values, "--values", str(folder / "without-zookeeper-login-values.yaml"))
    running = [each for each in objects if each["kind"] in ("Deployment", "StatefulSet", "CronJob")]
    assert [each["metadata"]["name"] for each in running] == ["kontroller-operator"]
    secret = yaml.safe_load((folder / "without-zookeeper-connection.yaml").read_text())
    volumes = running[0]["spec"]["template"]["spec"]["volumes"]
    sources = [source["secret"]["name"] for each in volumes for source in each.get("projected", {}).get("sources", ())]
    assert sources == [secret["metadata"]["name"]]
    cluster = yaml.safe_load((PROJECT / "examples" / "without-zookeeper" / "cluster.yaml").read_text())
    bootstrap = cluster["spec"]["bootstrapServers"]
    assert f"bootstrap.servers={bootstrap}\n" in secret["stringData"]["server.properties"]
    (asks,) = find_object(objects, "Pod", "kontroller-test-cluster")["spec"]["containers"]
    assert asks["args"][2] == f"--bootstrap-server={bootstrap}"
    assert asks["args"][4] == f"--command-config={asks['workingDir']}/server.properties"


def test_the_example_of_pods_of_kafka_4_is_where_the_cluster_s_example_looks() -> None:
    folder = PROJECT / "examples" / "without-zookeeper"
    objects = list(yaml.safe_load_all((folder / "kafka-4-pods.yaml").read_text()))
    brokers = find_object(objects, "StatefulSet", "kafka")["spec"]
    (port,) = find_object(objects, "Service", brokers["serviceName"])["spec"]["ports"]
    pods = [f"kafka-{number}.{brokers['serviceName']}:{port['port']}" for number in range(brokers["replicas"])]
    cluster = yaml.safe_load((folder / "cluster.yaml").read_text())
    assert set(cluster["spec"]["bootstrapServers"].split(",")) <= set(pods)


@pytest.mark.parametrize("values", [CONTROLLER_ON, SELF_CONTAINED])
def test_the_chart_has_nothing_that_helm_finds_fault_with(values: tuple[str, ...]) -> None:
    assert "0 chart(s) failed" in helm("lint", CHART, "--strict", *values)


def test_everything_carries_the_labels_that_say_where_it_comes_from() -> None:
    for each in render(*SELF_CONTAINED):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "kontroller"
        assert labels["app.kubernetes.io/instance"] == "kontroller"
        assert labels["helm.sh/chart"].startswith("kontroller-")


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_new_version_of_the_chart_alone_restarts_no_pod(component: str) -> None:
    versioned = {"helm.sh/chart", "app.kubernetes.io/version"}
    assert versioned.isdisjoint(workload(component)["template"]["metadata"]["labels"])


def test_the_chart_has_the_definitions_of_the_folder_crds() -> None:
    files = (yaml.safe_load(path.read_text()) for path in (PROJECT / "crds").glob("*.yaml"))
    specs = {each["metadata"]["name"]: each["spec"] for each in files}
    in_chart = [each for each in render() if each["kind"] == "CustomResourceDefinition"]
    assert {each["metadata"]["name"]: each["spec"] for each in in_chart} == specs
    assert all(each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for each in in_chart)
    assert not [each for each in render("--set", "crds.install=false") if "Custom" in each["kind"]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("operator.replicas=10", "replicas"),
        ("controller.replicas=0", "replicas"),
        ("watchNamespaces={Payments}", "watchNamespaces"),
        ("controller.zookeeper=zk", "/controller/zookeeper"),
        ("image.repository=", "/image/repository"),
        ("zookeeper.replicas=2", "/zookeeper/replicas"),
        ("kafka.config.a={1,2}", "/kafka/config/a"),
        ("kafka.persistence.size=big", "/kafka/persistence/size"),
        ("controller.journal.retentionHours=0", "/controller/journal/retentionHours"),
        ("zookeeper.juteMaxbufferBytes=1000", "/zookeeper/juteMaxbufferBytes"),
        ("controller.limits.maxConnections=0", "/controller/limits/maxConnections"),
        ("controller.limits.maxConections=9", "/controller/limits"),
        (
            "controller.enabled=true,controller.zookeeper=zk:2181,controller.limits.maxConnections=10000",
            "controller.resources.limits.memory is 1Gi.*: set it to 1610Mi or more, or lower them",
        ),
        (
            "controller.enabled=true,controller.zookeeper=zk:2181,controller.limits.queuedMaxRequestBytes=536870912",
            "controller.resources.limits.memory is 1Gi.*: set it to 1305Mi or more, or lower them",
        ),
        ("controller.access.adminCidrs={pods}", "/controller/access/adminCidrs"),
        (CONTROLLER_FOR_SOME, "controller.enabled needs a ZooKeeper"),
        (
            "controller.enabled=true,zookeeper.enabled=true",
            "every pod could change the cluster.* for example controller.access.adminCidrs=",
        ),
        (
            "controller.enabled=true,zookeeper.enabled=true,controller.connectionSecrets={tls}",
            "controller.access.adminCidrs is empty, and callers do not log in",
        ),
        (
            "controller.enabled=true,zookeeper.enabled=true,controller.listenerName=SASL_SSL,controller.connectionSecrets={tls},"
            "controller.moreListeners[0].name=PLAINTEXT,controller.moreListeners[0].port=1",
            "controller.access.adminCidrs is empty, and callers do not log in",
        ),
        ("kafka.enabled=true", r"kafka.enabled needs a ZooKeeper: .*; the chart cannot run brokers without ZooKeeper"),
        ("clusterCheck.bootstrapServers=kafka", "/clusterCheck/bootstrapServers"),
        ("clusterCheck.connectionSecrets={a}", "clusterCheck.bootstrapServers names none: set it"),
        ("clusterCheck=null", "clusterCheck"),
        ("approvalPolicy.required=true", "approvalPolicy.required has no effect .*: set approvalPolicy.enabled=true"),
        ("operator.livenessPort=9405", "operator.livenessPort and operator.metricsPort are both 9405"),
        (f"controller.advertise=a:1,{CONTROLLER_FOR_SOME},zookeeper.enabled=true", "set controller.replicas=1"),
        (f"controller.id=0,{CONTROLLER_FOR_SOME},zookeeper.enabled=true", "too low for 2 controllers"),
        (
            f"controller.moreListeners[0].name=A,controller.moreListeners[0].port=9093,{CONTROLLER_FOR_SOME},zookeeper.enabled=true",
            "has the name or the port of another listener",
        ),
        (
            "controller.moreListeners[0].name=A,controller.moreListeners[0].port=1,controller.clientListener=A,"
            f"{CONTROLLER_FOR_SOME},zookeeper.enabled=true",
            "controller.clientListener is for one listener that serves all",
        ),
        (
            f"controller.hideFrom={{CLIENT,PLAINTEXT}},{CONTROLLER_FOR_SOME},zookeeper.enabled=true",
            "controller.hideFrom names PLAINTEXT, at which brokers or clients find the controller",
        ),
    ],
)
def test_a_wrong_value_is_refused(values: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render("--set", values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            "kafka.drain.deadlineSeconds=121",
            "kafka.terminationGracePeriodSeconds is 180, .* set it to 181 or more",
        ),
        ("kafka.terminationGracePeriodSeconds=30,kafka.drain.enabled=false", "set it to 60 or more"),
        (r"kafka.config.broker\.id=7", "kafka.config may not set broker.id"),
        (r"kafka.config.zookeeper\.connect=zk:2181", "kafka.config may not set zookeeper.connect"),
        (r"zookeeper.config.clientPort=1", "zookeeper.config may not set clientPort"),
        (r"zookeeper.config.server\.4=zk", "zookeeper.config may not set server.4"),
        ("webhook.enabled=true", "webhook.enabled needs a certificate: set webhook.certificate.secretName"),
        ("webhook.enabled=true,webhook.certificate.secretName=a", "set webhook.certificate.caBundle"),
        (
            "webhook.enabled=true,webhook.certificate.certManager.enabled=true,webhook.clientCa.configMap=a",
            "webhook.clientCa.configMap needs webhook.clientCa.names",
        ),
        ("controller.port=9404", "controller.metricsPort and controller.port are both 9404.*: change one of them"),
        (
            "webhook.enabled=true,webhook.certificate.secretName=a,webhook.certificate.caBundle=YQ==,webhook.port=9405",
            "operator.metricsPort and webhook.port are both 9405",
        ),
        ("clusterCheck.bootstrapServers=a:1", "with kafka.enabled `helm test` asks the release's own"),
        ("kafka.firstBrokerId=997", "controllers' ids 999 to 1000 and the brokers' ids 997 to 999 overlap"),
    ],
)
def test_values_that_cannot_work_together_are_refused(values: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*SELF_CONTAINED, "--set", values)


def test_a_webhook_s_certificate_comes_of_cert_manager_where_that_is_wanted() -> None:
    """Its kinds are not in the API server of these tests."""
    wanted = "webhook.enabled=true,webhook.certificate.certManager.enabled=true"
    objects = render("--set", wanted)
    issuer, certificate = (
        find_object(objects, kind, "kontroller-operator-webhook") for kind in ("Issuer", "Certificate")
    )
    assert issuer["spec"] == {"selfSigned": {}}
    assert certificate["spec"]["dnsNames"] == [f"kontroller-operator-webhook.{RELEASE_NAMESPACE}.svc"]
    (volume,) = (
        each["secret"]
        for each in find_object(objects, "Deployment", "kontroller-operator")["spec"]["template"]["spec"]["volumes"]
        if each["name"] == "webhook"
    )
    assert volume["secretName"] == certificate["spec"]["secretName"]
    asked = find_object(objects, "ValidatingWebhookConfiguration", f"kontroller.{RELEASE_NAMESPACE}")
    said = asked["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert said == f"{RELEASE_NAMESPACE}/{certificate['metadata']['name']}"
    assert "caBundle" not in asked["webhooks"][0]["clientConfig"]
    theirs = f"{wanted},webhook.certificate.certManager.issuerRef.kind=ClusterIssuer"
    others = render("--set", f"{theirs},webhook.certificate.certManager.issuerRef.name=company")
    assert "Issuer" not in {each["kind"] for each in others}


def test_the_webhook_answers_only_certificates_of_the_names_that_are_set() -> None:
    wanted = "webhook.enabled=true,webhook.certificate.certManager.enabled=true"
    known = "webhook.clientCa.configMap=kube-root-ca.crt,webhook.clientCa.names={kube-apiserver,other}"
    for values, expected in ((wanted, []), (f"{wanted},{known}", ["ca=/etc/kontroller/webhook-clients/ca.crt",
                             "name=kube-apiserver", "name=other"])):  # fmt: skip
        pod = find_object(render("--set", values), "Deployment", "kontroller-operator")["spec"]["template"]["spec"]
        arguments = pod["containers"][0]["args"]
        prefix = "--webhook-client-"
        assert [each.removeprefix(prefix) for each in arguments if each.startswith(prefix)] == expected
        mounted = [each["configMap"]["name"] for each in pod["volumes"] if each["name"] == "webhook-clients"]
        assert mounted == (["kube-root-ca.crt"] if expected else [])


def test_the_webhook_is_open_to_the_peers_that_are_set_and_otherwise_to_all() -> None:
    wanted = "networkPolicy.enabled=true,webhook.enabled=true,webhook.certificate.certManager.enabled=true"
    api_server = "networkPolicy.apiServer[0].ipBlock.cidr=10.0.0.1/32"
    for values, expected in ((wanted, None), (f"{wanted},{api_server}", [{"ipBlock": {"cidr": "10.0.0.1/32"}}])):
        policy = find_object(render("--set", values), "NetworkPolicy", "kontroller-operator")
        peers = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}
        assert peers == {"liveness": None, "webhook": expected}


def test_the_webhook_refuses_no_deletion_but_of_kafkaclusters_and_may_be_away_for_that_of_topics() -> None:
    wanted = "webhook.enabled=true,webhook.certificate.certManager.enabled=true,webhook.failurePolicy=Fail"
    configuration = find_object(
        render("--set", wanted), "ValidatingWebhookConfiguration", f"kontroller.{RELEASE_NAMESPACE}"
    )
    deletions = {
        webhook["failurePolicy"]: rule["resources"]
        for webhook in configuration["webhooks"]
        for rule in webhook["rules"]
        if "DELETE" in rule["operations"]
    }
    assert deletions == {"Fail": ["kafkaclusters"], "Ignore": ["kafkatopics"]}
    for webhook in configuration["webhooks"]:
        conditions = {each["name"]: each["expression"] for each in webhook["matchConditions"]}
        assert conditions["the-spec-changes"].startswith("request.operation == 'DELETE' || ")


def test_values_at_the_limit_are_taken() -> None:
    assert render(*SELF_CONTAINED, "--set", "kafka.drain.deadlineSeconds=120,kafka.firstBrokerId=996")
    assert render(*SELF_CONTAINED, "--set", "controller.id=10000,kafka.firstBrokerId=10001")


def test_the_schema_describes_every_value() -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())
    values = yaml.safe_load(helm("show", "values", CHART))

    def find_undescribed(known: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[str]:
        for name, value in given.items():
            field = known.get("properties", {}).get(name, {})
            if not field.get("description"):
                yield f"{path}.{name}"
            if "properties" in field:
                yield from find_undescribed(field, value, f"{path}.{name}")

    assert list(find_undescribed(schema, values, "")) == []


def test_the_schema_refuses_every_name_that_is_not_there() -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())

    def open_ended(known: dict[str, Any], path: str) -> Iterator[str]:
        if "properties" in known and known.get("additionalProperties") is not False:
            yield path
        for name, field in known.get("properties", {}).items():
            yield from open_ended(field, f"{path}.{name}")

    assert list(open_ended(schema, "")) == []


def test_only_pods_that_ask_the_api_server_get_a_token() -> None:
    objects = render(*SELF_CONTAINED)
    pods = [each["spec"] for each in objects if each["kind"] == "Pod"]
    pods += [
        each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("Deployment", "StatefulSet", "Job")
    ]
    with_token = {pod["containers"][0]["name"] for pod in pods if pod["automountServiceAccountToken"]}
    assert with_token == {"operator", "api-check", "release-finalizers", "test-api"}
    accounts = [each for each in objects if each["kind"] == "ServiceAccount"]
    assert not any(account["automountServiceAccountToken"] for account in accounts)


def test_no_pod_gets_variables_of_services() -> None:
    for component in COMPONENTS:
        assert workload(component)["template"]["spec"]["enableServiceLinks"] is False


@pytest.mark.parametrize("component", ["operator", "controller", "zookeeper", "kafka"])
def test_pods_of_one_kind_are_rather_apart_and_one_at_a_time_may_be_evicted(component: str) -> None:
    objects = render(*SELF_CONTAINED)
    kind = "Deployment" if component == "operator" else "StatefulSet"
    of_it = find_object(objects, kind, f"kontroller-{component}")["spec"]["selector"]
    spec = workload(component)["template"]["spec"]
    (rule,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert rule["podAffinityTerm"] == {"topologyKey": "kubernetes.io/hostname", "labelSelector": of_it}
    (spread,) = spec["topologySpreadConstraints"]
    assert (spread["whenUnsatisfiable"], spread["labelSelector"]) == ("ScheduleAnyway", of_it)
    budget = find_object(objects, "PodDisruptionBudget", f"kontroller-{component}")["spec"]
    assert (budget["maxUnavailable"], budget["selector"]) == (1, of_it)
    assert ("unhealthyPodEvictionPolicy" in budget) is (component in ("controller", "operator"))
    own = workload(component, "--set-json", f'{component}.affinity={{"nodeAffinity":{{}}}}')
    assert own["template"]["spec"]["affinity"] == {"nodeAffinity": {}}
    off = render(*SELF_CONTAINED, "--set", f"{component}.podDisruptionBudget=false")
    assert f"kontroller-{component}" not in {
        each["metadata"]["name"] for each in off if each["kind"] == "PodDisruptionBudget"
    }


def test_rules_for_topics_reach_controllers_and_operator_which_restart_when_they_change(tmp_path: Path) -> None:
    rules = [{"expression": "topic.partitions <= 12", "message": "use at most 12 partitions"}]
    one, two = (("--set-json", f"topicRules={json.dumps(each)}") for each in (rules, rules * 2))
    content = find_object(render(*one), "ConfigMap", "kontroller-topic-rules")["data"]["rules.yaml"]
    (tmp_path / "rules.yaml").write_text(content)
    assert read_topic_rules(tmp_path / "rules.yaml").count == 1
    for component in ("controller", "operator"):
        template, changed = (workload(component, *each)["template"] for each in (one, two))
        (container,) = template["spec"]["containers"]
        assert "--topic-rules=/etc/kontroller/topic-rules/rules.yaml" in container["args"]
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert mounts["topic-rules"] == "/etc/kontroller/topic-rules"
        assert {"name": "topic-rules", "configMap": {"name": "kontroller-topic-rules"}} in template["spec"]["volumes"]
        assert template["metadata"]["annotations"] != changed["metadata"]["annotations"]
    assert "topic-rules" not in json.dumps(render(*CONTROLLER_ON))


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [({"expression": "true"}, "message"), ({"message": "no"}, "expression"), ({"expression": "true", "x": 1}, "x")],
)
def test_a_rule_that_is_not_one_is_refused(rule: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        render("--set-json", f"topicRules={json.dumps([rule])}")
