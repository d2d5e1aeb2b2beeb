"""All connections have one description, including the reader of a topic and `helm test`."""

from typing import Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import CONTROLLER_ON, SELF_CONTAINED, Object, find_object, options_of, render

pytestmark = pytest.mark.needs(Part.HELM)

FOLDER: Final = "/etc/kontroller/connection"
FILE: Final = f"--properties={FOLDER}/server.properties"
TOPIC: Final = "{0}.enabled=true,{0}.topic.name=journal,{0}.topic.bootstrapServers=kafka-0:9093"
SECRETS: Final = "{0}.connectionSecrets={{reader,authority}}"
READERS: Final = {"history": ("CronJob", "kontroller-history"), "alarms": ("Deployment", "kontroller-alarms")}


def values(reader: str, *parts: str) -> tuple[str, ...]:
    return ("--set", ",".join(part.format(reader) for part in parts))


def pod(objects: list[Object], reader: str) -> Object:
    """The spec of the pods that read."""
    spec = find_object(objects, *READERS[reader])["spec"]
    template: Object = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    return dict(template["spec"])


def find_reader(spec: Object) -> Object:
    """The container that reads journals."""
    containers: list[Object] = spec["initContainers"] if "initContainers" in spec else spec["containers"]
    return containers[0]


def sources(spec: Object) -> list[str]:
    """The Secrets by which a pod connects."""
    return [
        source["secret"]["name"]
        for volume in spec["volumes"]
        if volume["name"] == "connection"
        for source in volume["projected"]["sources"]
    ]


@pytest.mark.parametrize("reader", READERS)
def test_who_reads_a_topic_has_how_its_brokers_are_secured_as_files(reader: str) -> None:
    objects = render(*values(reader, TOPIC, SECRETS))
    spec = pod(objects, reader)
    assert sources(spec) == ["reader", "authority"]
    container = find_reader(spec)
    assert FILE in container["args"]
    assert {"name": "connection", "mountPath": FOLDER, "readOnly": True} in container["volumeMounts"]
    command = ("history", "watch") if reader == "alarms" else ("history", "ingest")
    assert "--properties" in options_of(*command)
    others = [each for each in spec["containers"] if each["name"] != container["name"]]
    assert [each for each in others if FOLDER in str(each)] == [], "what reads no topic needs no login"


@pytest.mark.parametrize("reader", READERS)
def test_a_topic_without_secrets_is_read_as_it_is(reader: str) -> None:
    spec = pod(render(*values(reader, TOPIC)), reader)
    assert FOLDER not in str(spec)


@pytest.mark.parametrize("reader", READERS)
def test_secrets_that_nobody_would_be_shown_are_refused(reader: str) -> None:
    with pytest.raises(CommandError, match=f"{reader}.connectionSecrets say how the brokers of a topic are secured"):
        render(*CONTROLLER_ON, *values(reader, "{0}.enabled=true", SECRETS))


def test_the_chart_s_test_asks_controllers_of_other_brokers_by_what_these_have() -> None:
    secured = ("--set", "controller.listenerName=SASL_SSL,controller.connectionSecrets={kafka-login}")
    test = find_object(render(*CONTROLLER_ON, *secured), "Pod", "kontroller-test-cluster")["spec"]
    (container,) = test["containers"]
    assert FILE in container["args"]
    assert sources(test) == ["kafka-login"]
    plain = find_object(render(*CONTROLLER_ON), "Pod", "kontroller-test-cluster")["spec"]
    assert FOLDER not in str(plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*CONTROLLER_ON, "--set", "controller.listenerName=SASL_SSL"), "controller.connectionSecrets"),
        ((*SELF_CONTAINED, "--set", "zookeeper.tls.secretName=a"), "kafka.connectionSecrets"),
        (
            (*SELF_CONTAINED, "--set", "zookeeper.tls.secretName=a,kafka.connectionSecrets={b}"),
            "controller.connectionSecrets",
        ),
    ],
)
def test_who_would_be_admitted_nowhere_is_told_before_it_is_installed(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*options)
