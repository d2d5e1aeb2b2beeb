"""The pod of `history watch`: it gets the journals of the release, has no rights, and Prometheus finds it."""

import json
from typing import Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import RELEASE_NAMESPACE, SELF_CONTAINED, Object, find_object, options_of, render

pytestmark = pytest.mark.needs(Part.HELM)

ON: Final = (*SELF_CONTAINED, "--set", "alarms.enabled=true")
ELSEWHERE: Final = "http://recorder.other.svc:9404/journal"
PROMETHEUS: Final = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}


def pod(*values: str) -> Object:
    """The spec of the watch's pod."""
    spec: Object = find_object(render(*values), "Deployment", "kontroller-alarms")["spec"]["template"]["spec"]
    return spec


def arguments(*values: str) -> list[str]:
    (container,) = pod(*values)["containers"]
    found: list[str] = container["args"]
    return found


def find_values(option: str, *values: str) -> list[str]:
    start = f"--{option}="
    return [each.removeprefix(start) for each in arguments(*values) if each.startswith(start)]


def test_without_being_asked_for_there_is_no_watch() -> None:
    assert [each for each in render(*SELF_CONTAINED) if "alarms" in each["metadata"]["name"]] == []


def test_it_follows_the_journal_of_each_controller_and_those_that_are_named() -> None:
    own = [
        f"http://kontroller-controller-{number}.kontroller-controller.{RELEASE_NAMESPACE}.svc:9999/journal"
        for number in range(3)
    ]
    values = ("--set", "controller.replicas=3,controller.metricsPort=9999")
    assert find_values("journal", *ON, *values) == own
    named_too = ("--set", f"alarms.journals={{{ELSEWHERE}}}")
    assert find_values("journal", *ON, *values, *named_too) == [*own, ELSEWHERE]
    assert find_values("journal", "--set", "alarms.enabled=true", *named_too) == [ELSEWHERE]


def test_a_topic_is_followed_instead_of_what_the_controllers_serve() -> None:
    topic = ("--set", r"alarms.topic.name=journal,alarms.topic.bootstrapServers=kafka-0:9092\,kafka-1:9092")
    assert find_values("journal", *ON, *topic) == []
    assert find_values("topic", *ON, *topic) == ["journal"]
    assert find_values("bootstrap-server", *ON, *topic) == ["kafka-0:9092,kafka-1:9092"]


def test_the_command_has_every_option_that_it_is_given() -> None:
    everything = (
        "--set",
        r"alarms.alertmanagers={http://am-0:9093,http://am-1:9093},alarms.topic.name=t,alarms.topic.bootstrapServers=b:1,"
        "alarms.leaderlessAfterSeconds=0",
        "--set-json",
        "alarms.silentAfterSeconds=12.5",
    )
    words = arguments(*ON, *everything)
    assert words[:2] == ["history", "watch"]
    assert {each.partition("=")[0] for each in words[2:]} <= options_of("history", "watch")
    assert find_values("alertmanager", *ON, *everything) == ["http://am-0:9093", "http://am-1:9093"]
    assert find_values("leaderless-after-seconds", *ON, *everything) == ["0"]
    assert find_values("silent-after-seconds", *ON, *everything) == ["12.5"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("--set", "alarms.enabled=true"), "alarms.enabled needs a journal: set controller.enabled"),
        ((*ON, "--set", "controller.journal.enabled=false"), "alarms.enabled needs a journal"),
        ((*ON, "--set", "alarms.topic.name=t"), "alarms.topic.bootstrapServers go together"),
        ((*ON, "--set", "alarms.alertmanagers={am:9093}"), "/alarms/alertmanagers/0"),
        ((*ON, "--set", "alarms.journals={s3a://bucket}"), "/alarms/journals/0"),
        ((*ON, "--set", "alarms.silentAfterSeconds=5"), "/alarms/silentAfterSeconds"),
        ((*ON, "--set", "alarms.minInsyncReplicas=0"), "/alarms/minInsyncReplicas"),
    ],
)
def test_values_with_which_it_could_not_work_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*values)


def test_its_pod_is_placed_as_the_values_say() -> None:
    placed = (
        "alarms.nodeSelector.disk=ssd,alarms.podAnnotations.a=b,alarms.claimName=watch,imagePullSecrets[0].name=pull"
    )
    spec = pod(*ON, "--set", placed)
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert {"name": "watch", "persistentVolumeClaim": {"claimName": "watch"}} in spec["volumes"]
    assert {"name": "watch", "emptyDir": {}} in pod(*ON)["volumes"]


def test_its_pod_has_no_token_and_writes_only_where_it_must() -> None:
    spec = pod(*ON)
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/watch"}
    (kept,) = find_values("checkpoint", *ON)
    assert kept.startswith("/watch/")


def test_there_is_one_at_a_time_and_probes_ask_where_it_answers() -> None:
    port = ("--set", "alarms.metricsPort=9999")
    deployment = find_object(render(*ON, *port), "Deployment", "kontroller-alarms")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    (container,) = deployment["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 9999}]
    assert find_values("metrics-port", *ON, *port) == ["9999"]
    probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert probes == [{"path": "/healthz", "port": "metrics"}, {"path": "/readyz", "port": "metrics"}]


def test_it_may_read_the_journals_and_prometheus_its_metrics() -> None:
    restricted = (
        *ON,
        "--set",
        "networkPolicy.enabled=true",
        "--set-json",
        f"networkPolicy.monitoring={json.dumps([PROMETHEUS])}",
    )
    objects = render(*restricted)
    labels = find_object(objects, "Deployment", "kontroller-alarms")["spec"]["selector"]["matchLabels"]
    (readers,) = (
        rule["from"]
        for rule in find_object(objects, "NetworkPolicy", "kontroller-controller")["spec"]["ingress"]
        if {"port": "metrics"} in rule["ports"]
    )
    assert readers == [PROMETHEUS, {"podSelector": {"matchLabels": labels}}]
    own = find_object(objects, "NetworkPolicy", "kontroller-alarms")["spec"]
    assert own["podSelector"] == {"matchLabels": labels}
    assert own["ingress"] == [{"ports": [{"port": "metrics"}], "from": [PROMETHEUS]}]
