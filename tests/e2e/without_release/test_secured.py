"""The examples of secured clusters, installed: certificates or logins are the only credentials, and nothing else is
needed.

They run in their own namespace, after the tests beside this folder and their release: two operators of all namespaces
would do everything twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.clusters.run_folder import RunFolder
from devcluster.node.pods import PodCluster
from tests.e2e.release import NAME, Release
from tests.e2e.without_release.examples import (
    ADMIN,
    APP,
    CERTIFICATES,
    EXAMPLES,
    LOGINS,
    NAMESPACE,
    Example,
    Filled,
)
from tests.e2e.without_release.instead import instead
from tests.e2e.without_release.said import PYTHON, everything_said

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

BOOTSTRAP: Final = f"{NAME}-kafka.{NAMESPACE}.svc:9092"
CONTROLLER: Final = f"{NAME}-controller-0.{NAME}-controller.{NAMESPACE}.svc"
FEW: Final = ",".join(
    (
        "kafka.replicas=2,operator.replicas=1,kafka.heapOpts=-Xmx256m,kafka.drain.enabled=false",
        "kafka.resources.requests.cpu=100m,kafka.resources.requests.memory=512Mi,controller.resources.requests.cpu=100m",
        *(f"{owner}.persistence.enabled=false" for owner in ("kafka", "zookeeper", "controller.journal")),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """An installed example."""

    release: Release
    example: Example
    filled: Filled


@pytest.fixture(
    scope="module",
    params=[pytest.param(example, id=name) for name, example in (("logins", LOGINS), ("certificates", CERTIFICATES))],
)
def secured(request: pytest.FixtureRequest, pods: PodCluster, servers_folder: RunFolder) -> Iterator[Secured]:
    """An example, with passwords and with certificates of this test's own authority."""
    example: Example = request.param
    release = instead(pods, NAMESPACE, str(EXAMPLES / example.values), "--set", FEW)
    filled = Filled(example, release, servers_folder.data(f"secured-{example.values}"))
    with release:
        release.apply(toolbox(f"{pods.images}kontroller-kafka:0.1.0", example))
        release.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=120s")
        yield Secured(release=release, example=example, filled=filled)
    pods.kubernetes.kubectl("delete", "namespace", NAMESPACE, "--timeout=180s")


def toolbox(image: str, example: Example) -> dict[str, Any]:
    """Return a pod with Kafka's tools, and with the credentials of the cluster itself and of a client."""
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]
    for folder, secrets in example.folders.items():
        name = Path(folder).name
        sources = [{"secret": {"name": secret}} for secret in secrets]
        volumes.append({"name": name, "projected": {"sources": sources}})
        mounts.append({"name": name, "mountPath": folder})
    container = {"name": "tools", "image": image, "command": ["sleep", "infinity"], "volumeMounts": mounts}
    spec = {"containers": [container], "volumes": volumes, "enableServiceLinks": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "toolbox", "namespace": NAMESPACE}, "spec": spec}


def run(release: Release, folder: str, script: str) -> str:
    """Run a script in the toolbox, in a folder of credentials. Raises CommandError."""
    return release.kubectl("exec", "toolbox", "--", "sh", "-ec", f"cd {folder}; {script}")


def produce(release: Release, *messages: str) -> None:
    """Produce as the client. Raises CommandError with the tool's output."""
    where = f"--bootstrap-server {BOOTSTRAP} --topic orders --producer.config client.properties --producer-property"
    lines = "\\n".join(messages)
    script = f"printf '{lines}\\n' | kafka-console-producer.sh {where} delivery.timeout.ms=60000 2>&1"
    said = run(release, APP, script)
    if "Exception" in said:
        raise CommandError(said)


def consume(release: Release, count: int) -> list[str]:
    """Return this number of messages from the beginning, read as the client."""
    what = f"--topic orders --partition 0 --offset earliest --max-messages {count} --timeout-ms 60000"
    where = f"--bootstrap-server {BOOTSTRAP} --consumer.config client.properties"
    return run(release, APP, f"kafka-console-consumer.sh {where} {what}").split()


def test_a_topic_is_made_written_and_read_and_only_by_whom_acls_allow(secured: Secured) -> None:
    release = secured.release
    common = {"apiVersion": "kontroller.dev/v1alpha1"}
    where = {"zookeeper": {"connect": secured.example.zookeeper_connect()}}
    cluster = {**common, "kind": "KafkaCluster", "metadata": {"name": "demo"}, "spec": where}
    spec = {"clusterRef": {"name": "demo"}, "partitions": 1, "replicationFactor": 2}
    release.apply(cluster, {**common, "kind": "KafkaTopic", "metadata": {"name": "orders"}, "spec": spec})
    assert release.wait_ready("kafkacluster", "demo")["controller"]["kind"] == "Kontroller"
    release.wait_ready("kafkatopic", "orders")
    with pytest.raises(CommandError, match="TopicAuthorization"):
        produce(release, "refused")
    who = f"--bootstrap-server {BOOTSTRAP} --command-config client.properties --add"
    for right in ("--producer --topic orders", "--consumer --topic orders --group app"):
        run(release, ADMIN, f"kafka-acls.sh {who} --allow-principal {secured.example.client} {right}")
    produce(release, "one", "two")
    assert consume(release, 2) == ["one", "two"]


def test_the_chart_s_own_tests_pass(secured: Secured) -> None:
    assert "Failed" not in secured.release.run_tests()


def test_a_certificate_that_is_renewed_is_shown_by_a_controller_that_goes_on(secured: Secured) -> None:
    renewed = secured.filled.renew("kafka")
    for number in range(2):
        # The kubelet refreshes a pod's files at once if the pod has changed, and otherwise within some minutes.
        secured.release.kubectl("annotate", "pod", f"{NAME}-controller-{number}", "tests/renewed=true")
    ask = f"import ssl; print(ssl.get_server_certificate(('{CONTROLLER}', 9093)))"

    def is_shown() -> bool:
        return run(secured.release, APP, f'{PYTHON} -c "{ask}"').split() == renewed.split()

    secured.release.wait_for(is_shown, "the new certificate is shown")
    assert restarts(secured.release, "controller") == [0, 0]


def test_another_controller_takes_over_and_brokers_follow_it_by_its_name(secured: Secured) -> None:
    release = secured.release
    before = release.status("kafkacluster", "demo")["controller"]
    pod = f"{NAME}-controller-{1000 - int(before['id'])}"
    release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    release.wait_for(lambda: release.controller_epoch() > before["epoch"], "there is another controller")
    release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=120s")
    produce(release, "three")
    assert consume(release, 3) == ["one", "two", "three"]
    assert "Failed" not in release.run_tests()


def test_who_has_no_certificate_or_token_is_told_nothing(secured: Secured) -> None:
    asked = f"http://{NAME}-controller-0.{NAME}-controller:9404/journal"
    script = f"import urllib.request; urllib.request.urlopen('{asked}')"
    with pytest.raises(CommandError, match="401"):
        run(secured.release, APP, f'{PYTHON} -c "{script}"')
    script = f"import socket; socket.create_connection(('{NAME}-zookeeper', 2181), timeout=5)"
    with pytest.raises(CommandError, match="refused"):
        run(secured.release, APP, f'{PYTHON} -c "{script}"')


def test_no_secret_is_in_a_log_a_command_line_an_object_a_metric_or_a_journal(secured: Secured) -> None:
    said = everything_said(secured.release)
    kinds = {where.split()[0] for where in said}
    assert kinds == {"log", "processes", "objects", "helm", "journal", "metrics"}
    assert [where for where, text in said.items() if not text and where != "log toolbox tools"] == []
    assert "--zookeeper=" in said[f"processes {NAME}-controller-0"], "a command line is there to be looked at"
    known = secured.filled.secrets()
    assert min(map(len, known)) > 20
    assert [where for where, text in said.items() for secret in known if secret in text] == []


def restarts(release: Release, component: str) -> list[int]:
    """Return the number of restarts of each pod's container."""
    pods = release.get("pods", "--selector", f"app.kubernetes.io/component={component}")["items"]
    return [status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]]
