"""The example of a secured cluster, installed: certificates are all that anybody has, and it works with nothing else.

It is in a namespace of its own, after the other release is gone, as the tests of this folder run after those beside it: two
operators of all namespaces would do everything twice.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from devcluster.clusters.certificates import Authority
from devcluster.clusters.kubernetes import CommandError
from devcluster.clusters.run_folder import RunFolder
from devcluster.node.pods import PodCluster
from tests.e2e.release import NAME, PROJECT, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

NAMESPACE: Final = "secured"
EXAMPLES: Final = PROJECT / "examples" / "helm"
BOOTSTRAP: Final = f"{NAME}-kafka.{NAMESPACE}.svc:9092"
ADMIN, APP = "/etc/kafka-admin", "/etc/kafka-app"
"""Folders of the toolbox: what the cluster itself shows, and what a client shows that ACLs know."""
FEW: Final = ",".join(
    (
        "kafka.replicas=2,operator.replicas=1,kafka.heapOpts=-Xmx256m,kafka.drain.enabled=false",
        "kafka.resources.requests.cpu=100m,kafka.resources.requests.memory=512Mi,controller.resources.requests.cpu=100m",
        *(f"{owner}.persistence.enabled=false" for owner in ("kafka", "zookeeper", "controller.journal")),
    )
)


@pytest.fixture(scope="module")
def secured(pods: PodCluster, servers_folder: RunFolder) -> Iterator[Release]:
    """The example, with certificates of an authority of this test's own."""
    Release(pods).uninstall()
    there = "kafkatopics.kontroller.dev" in pods.kubernetes.kubectl("get", "crds", "--output", "name")
    further = f"{FEW},crds.install={json.dumps(not there)}"
    installed = Release(
        pods,
        namespace=NAMESPACE,
        values=str(EXAMPLES / "secured-values.yaml"),
        options=("--set", further),
    )
    pods.kubernetes.kubectl("create", "namespace", NAMESPACE)
    make_secrets(installed, servers_folder.data("secured-certificates"))
    with installed:
        installed.apply(toolbox(f"{pods.images}kontroller-kafka:0.1.0"))
        installed.kubectl("wait", "--for=condition=Ready", "pod/toolbox", "--timeout=120s")
        yield installed
    pods.kubernetes.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def make_secrets(release: Release, folder: Path) -> None:
    """What the example expects: the file of connections, and the Secrets that cert-manager would have made."""
    services = [f"{NAME}-{each}.{NAMESPACE}.svc" for each in ("kafka", "controller", "zookeeper")]
    names = {
        "kafka": (*services[:2], *(f"*.{service}" for service in services[:2])),
        "zookeeper": (f"*.{services[2]}", f"*.{services[2]}.cluster.local"),
        "app": (),
    }
    authority = Authority(folder)
    for common_name, alternatives in names.items():
        store = authority.issue(common_name, *alternatives).store()
        files = (f"--from-file=tls-combined.pem={store}", f"--from-file=ca.crt={authority.certificate}")
        release.kubectl("create", "secret", "generic", f"{common_name}-tls", *files)
    text = (EXAMPLES / "secured-connection.yaml").read_text().replace(".kafka.svc", f".{NAMESPACE}.svc")
    release.kubectl("apply", "-f", "-", stdin=text)


def toolbox(image: str) -> dict[str, Any]:
    """A pod with Kafka's tools, and with both certificates."""
    folders = {ADMIN: ("kafka-connection", "kafka-tls"), APP: ("kafka-connection", "app-tls")}
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]
    for folder, secrets in folders.items():
        name = Path(folder).name
        sources = [{"secret": {"name": secret}} for secret in secrets]
        volumes.append({"name": name, "projected": {"sources": sources}})
        mounts.append({"name": name, "mountPath": folder})
    container = {"name": "tools", "image": image, "command": ["sleep", "infinity"], "volumeMounts": mounts}
    spec = {"containers": [container], "volumes": volumes, "enableServiceLinks": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "toolbox", "namespace": NAMESPACE}, "spec": spec}


def run(release: Release, folder: str, script: str) -> str:
    """Runs a script in the toolbox, beside the files of who asks. Raises CommandError."""
    return release.kubectl("exec", "toolbox", "--", "sh", "-ec", f"cd {folder}; {script}")


def produce(release: Release, *messages: str) -> None:
    """As the client. Raises CommandError, which has what the tool said."""
    where = f"--bootstrap-server {BOOTSTRAP} --topic orders --producer.config client.properties --producer-property"
    lines = "\\n".join(messages)
    script = f"printf '{lines}\\n' | kafka-console-producer.sh {where} delivery.timeout.ms=60000 2>&1"
    said = run(release, APP, script)
    if "Exception" in said:
        raise CommandError(said)


def consumed(release: Release, count: int) -> list[str]:
    """So many messages from the beginning, read as the client."""
    what = f"--topic orders --partition 0 --offset earliest --max-messages {count} --timeout-ms 60000"
    where = f"--bootstrap-server {BOOTSTRAP} --consumer.config client.properties"
    return run(release, APP, f"kafka-console-consumer.sh {where} {what}").split()


def test_a_topic_is_made_written_and_read_and_only_by_whom_acls_allow(secured: Release) -> None:
    (file,) = (
        line.strip()
        for line in (EXAMPLES / "secured-connection.yaml").read_text().splitlines()
        if "zookeeper.connect=" in line
    )
    connect = file.removeprefix("zookeeper.connect=").replace(".kafka.svc", f".{NAMESPACE}.svc")
    common = {"apiVersion": "kontroller.dev/v1alpha1"}
    cluster = {
        **common,
        "kind": "KafkaCluster",
        "metadata": {"name": "demo"},
        "spec": {"zookeeper": {"connect": connect}},
    }
    spec = {"clusterRef": {"name": "demo"}, "partitions": 1, "replicationFactor": 2}
    secured.apply(cluster, {**common, "kind": "KafkaTopic", "metadata": {"name": "orders"}, "spec": spec})
    assert secured.wait_ready("kafkacluster", "demo")["controller"]["kind"] == "Kontroller"
    secured.wait_ready("kafkatopic", "orders")
    with pytest.raises(CommandError, match="TopicAuthorization"):
        produce(secured, "refused")
    allow = f"--bootstrap-server {BOOTSTRAP} --command-config client.properties --add --allow-principal User:CN=app"
    for right in ("--producer --topic orders", "--consumer --topic orders --group app"):
        run(secured, ADMIN, f"kafka-acls.sh {allow} {right}")
    produce(secured, "one", "two")
    assert consumed(secured, 2) == ["one", "two"]


def test_the_chart_s_own_tests_pass(secured: Release) -> None:
    said = secured.kubernetes.helm("test", NAME, "--namespace", NAMESPACE, "--timeout", "3m")
    assert "Failed" not in said


def test_another_controller_takes_over_and_brokers_follow_it_by_its_name(secured: Release) -> None:
    before = secured.status("kafkacluster", "demo")["controller"]
    pod = f"{NAME}-controller-{1000 - int(before['id'])}"
    secured.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    secured.wait_for(lambda: secured.controller_epoch() > before["epoch"], "there is another controller")
    secured.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=120s")
    produce(secured, "three")
    assert consumed(secured, 3) == ["one", "two", "three"]
    test = secured.kubernetes.helm("test", NAME, "--namespace", NAMESPACE, "--timeout", "3m")
    assert "Failed" not in test


def test_who_has_no_certificate_or_token_is_told_nothing(secured: Release) -> None:
    asked = f"http://{NAME}-controller-0.{NAME}-controller:9404/journal"
    script = f"import urllib.request; urllib.request.urlopen('{asked}')"
    with pytest.raises(CommandError, match="401"):
        run(secured, APP, f'/opt/kontroller/bin/python -c "{script}"')
    script = f"import socket; socket.create_connection(('{NAME}-zookeeper', 2181), timeout=5)"
    with pytest.raises(CommandError, match="refused"):
        run(secured, APP, f'/opt/kontroller/bin/python -c "{script}"')
