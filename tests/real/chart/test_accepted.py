"""The API server accepts the chart's objects with many values, and the examples. Dry runs, checked against the
definitions.
"""

import json
from typing import Final

import pytest
import yaml

from devcluster.clusters.kubernetes import KubernetesApi
from tests.real.chart.charts import dry_run
from tests.unit.chart.rendering import (
    CONTROLLER_ON,
    EVERYTHING,
    PROJECT,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    render,
)
from tests.unit.chart.test_settings import COMPONENTS, everything_of

EXAMPLES: Final = PROJECT / "examples"
OPERATOR_ALONE: Final = ("--values", str(EXAMPLES / "helm" / "without-zookeeper-values.yaml"))
ON: Final = (*SELF_CONTAINED, "--set", "history.enabled=true,alarms.enabled=true")
PLACED: Final = "nodeSelector.disk=ssd,{0}.podAnnotations.a=b,imagePullSecrets[0].name=pull"
RESTRICTED: Final = (*ON, "--set", "networkPolicy.enabled=true", "--set-json")
PEERS: Final = json.dumps([{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}])
ELSEWHERE: Final = "http://recorder.other.svc:9404/journal"
THEIRS: Final = ",".join(
    f"{reader}.journals={{{ELSEWHERE}}},{reader}.journalTokens[0].journal={ELSEWHERE},"
    f"{reader}.journalTokens[0].secretName=theirs"
    for reader in ("history", "alarms")
)
TOPIC: Final = (
    "{0}.topic.name=journal,{0}.topic.bootstrapServers=kafka-0:9093,{0}.connectionSecrets={{reader,authority}}"
)
WITHOUT_VOLUMES: Final = "zookeeper.replicas=3," + ",".join(
    f"{owner}.persistence.enabled=false" for owner in ("zookeeper", "kafka", "controller.journal")
)
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "defaults": (),
    "controller": CONTROLLER_ON,
    "self-contained": SELF_CONTAINED,
    "no-volumes": (*SELF_CONTAINED, "--set", WITHOUT_VOLUMES),
    "kafka": ("--set", r"kafka.enabled=true,kafka.zookeeper=zk-0:2181\,zk-1:2181/kafka"),
    "namespaces": ("--set", "watchNamespaces={payments,audit}"),
    "no-rbac": ("--set", "operator.serviceAccount.create=false,rbac.create=false"),
    "webhook": ("--set", "webhook.enabled=true,webhook.certificate.secretName=a,webhook.certificate.caBundle=YQ=="),
    "operator-placed": ("--set", "operator." + PLACED.format("operator")),
    "alarms-placed": (*ON, "--set", "alarms.claimName=watch,alarms." + PLACED.format("alarms")),
    "history-placed": (*ON, "--set", "history.suspend=true,history." + PLACED.format("history")),
    "daily": (*ON, "--set-string", "history.schedule=@daily"),
    "five-minutes": (*ON, "--set-string", r"history.schedule=*/5 0-6 * * 1\,5"),
    "topic-read": (*ON, "--set", TOPIC.format("history"), "--set", TOPIC.format("alarms")),
    "token-given": (*ON, "--set", "controller.journal.token.secretName=journal"),
    "token-made": (*ON, "--set", "controller.journal.token.create=true"),
    "tokens-of-others": (*ON, "--set", "controller.journal.token.secretName=journal", "--set", THEIRS),
    "policies": (*ON, "--set", "networkPolicy.enabled=true"),
    "policies-for-all": (*RESTRICTED, "networkPolicy.clients=[{}]", "--set-json", "networkPolicy.monitoring=[{}]"),
    "policies-for-some": (
        *RESTRICTED,
        f"networkPolicy.clients={PEERS}",
        "--set-json",
        f"networkPolicy.monitoring={PEERS}",
    ),
    "egress": (*ON, "--set", "networkPolicy.enabled=true,networkPolicy.egress.enabled=true"),
    "digest": (*EVERYTHING, "--set", f"image.registry=r.example:5000,image.digest=sha256:{'0f' * 32}"),
    "no-contexts": (*EVERYTHING, "--set", "podSecurityContext=null,securityContext=null"),
    "common": (*EVERYTHING, "--set", "commonLabels.cost-center=42a,commonAnnotations.owner=kafka-team"),
    "every-setting": (*EVERYTHING, *(word for component in COMPONENTS for word in everything_of(component))),
    "replaced-by-hand": (
        *EVERYTHING,
        "--set-json",
        'operator.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}',
        "--set",
        "kafka.updateStrategy.type=OnDelete,zookeeper.updateStrategy.type=OnDelete",
    ),
    "dashboard": ("--set", "monitoring.dashboard.enabled=true,monitoring.dashboard.annotations.grafana_folder=Kafka"),
    "longest-name": (*EVERYTHING, "--set", f"fullnameOverride={'n' * 63}"),
    "other-name": (*EVERYTHING, "--set", "fullnameOverride=first"),
    "operator-alone": OPERATOR_ALONE,
    "operator-with-a-login": (
        *OPERATOR_ALONE,
        "--values",
        str(EXAMPLES / "helm" / "without-zookeeper-login-values.yaml"),
    ),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_the_api_server_takes_every_object_of_the_chart(api: KubernetesApi, values: tuple[str, ...]) -> None:
    objects = render(*values)
    assert len(dry_run(api, objects)) == len(objects)


@pytest.mark.parametrize("release", ["team.payments.kafka", "payments-production-europe-west-kafka-blue"])
def test_the_api_server_takes_releases_of_any_name(api: KubernetesApi, release: str) -> None:
    objects = render(*EVERYTHING, release=release)
    assert len(dry_run(api, objects)) == len(objects)


def example(name: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


@pytest.mark.parametrize("secured", ["secured", "secured-logins"])
def test_the_api_server_takes_the_secured_examples(api: KubernetesApi, secured: str) -> None:
    objects = render("--values", str(EXAMPLES / "helm" / f"{secured}-values.yaml"), namespace="audit")
    objects += example(f"helm/{secured}-connection.yaml")
    assert len(dry_run(api, objects, "--namespace", "audit")) == len(objects)


def test_the_api_server_takes_the_volume_and_the_reader_of_a_history(api: KubernetesApi) -> None:
    objects = example("history/volume.yaml") + example("history/reader.yaml")
    assert len(dry_run(api, objects, "--namespace", "audit")) == len(objects) == 2


def test_the_api_server_takes_pods_of_kafka_4(api: KubernetesApi) -> None:
    text = (EXAMPLES / "without-zookeeper" / "kafka-4-pods.yaml").read_text()
    objects = list(yaml.safe_load_all(text.replace("namespace: kafka\n", f"namespace: {RELEASE_NAMESPACE}\n")))
    assert len(dry_run(api, objects)) == len(objects)
