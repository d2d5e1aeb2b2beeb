"""The chart's webhook on a real API server: kubectl reports at once how the live cluster judges an object."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcluster.clusters.certificates import CertificateFiles, make_certificate
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import wait_until
from tests.real.operator.admission.configuration import make_configuration
from tests.real.operator.operated import (
    NAMESPACE,
    RELEASE,
    Objects,
    Operator,
    operate_namespace,
    run_operator,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LEASE = f"{RELEASE}-operator"
NEVER_VALID: dict[str, Any] = {"partitions": 1, "replicationFactor": 1, "config": {"retention.ms": "soon"}}
NOT_YET: dict[str, Any] = {"partitions": 1, "replicationFactor": 2}
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The working and the standby operator, and an API server that calls the webhook of one of them."""

    api: KubernetesCluster
    objects: Objects
    working: Operator
    standing_by: Operator
    ports: tuple[int, int]
    certificate: CertificateFiles
    audit: Path
    """The audit file of the working operator."""

    def ask(self, port: int, *, failure_policy: str = "Ignore") -> None:
        """Make the API server call the webhook at a port."""
        self.api.kubectl(
            "apply",
            "-f",
            "-",
            stdin=json.dumps(make_configuration(self.api, port, self.certificate, failure_policy=failure_policy)),
        )

    def write(self, name: str, spec: dict[str, Any], *, namespace: str = NAMESPACE) -> str:
        """Write a KafkaTopic; warnings count as errors."""
        body = {
            "apiVersion": "kontroller.dev/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterRef": {"name": "demo"}, **spec},
        }
        return self.api.kubectl("apply", "--warnings-as-errors", "-f", "-", stdin=json.dumps(body))

    def is_refused(self) -> bool:
        try:
            self.write("probe", NEVER_VALID)
        except CommandError as error:
            return "InvalidConfig" in str(error)
        self.api.kubectl("delete", "kafkatopic", "probe", "--namespace", NAMESPACE)
        return False


@pytest.fixture(scope="module")
def asking(
    servers_folder: RunFolder,
    zookeeper: ZooKeeper,
    kubernetes_api: KubernetesCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Asking]:
    ports = (reserve_port(), reserve_port())
    certificate = make_certificate(tmp_path_factory.mktemp("webhook"), "IP:127.0.0.1")
    audit = tmp_path_factory.mktemp("audit")
    with ExitStack() as stack:
        for port in ports:
            stack.callback(release_port, port)
        kafka = KafkaCluster(servers_folder, zookeeper, brokers=1, chroot="/asking")
        with zookeeper.client() as client:
            client.ensure_path("/asking")
        stack.enter_context(ControllerProcess(servers_folder, kafka.zookeeper_connect, name="asking-controller"))
        stack.enter_context(kafka)
        objects = stack.enter_context(operate_namespace(kubernetes_api, kafka.zookeeper_connect))
        operators = []
        for port in ports:
            settings = {
                "KONTROLLER_WEBHOOK": f"https://127.0.0.1:{port}",
                "KONTROLLER_WEBHOOK_CERTIFICATE": str(certificate.certificate),
                # An operator that loses the lease exits, and here nothing starts it again.
                "KONTROLLER_LEASE_DURATION_SECONDS": "120",
                "KONTROLLER_WEBHOOK_KEY": str(certificate.key),
                "KONTROLLER_AUDIT_FILE": str(audit / f"{port}.jsonl"),
            }
            running = run_operator(servers_folder, kubernetes_api, lease=LEASE, env=settings)
            operators.append(stack.enter_context(running))
            objects.wait_ready("kafkacluster", "demo")
            wait_until(lambda port=port: accepts(port), "the webhook listens")  # type: ignore[misc]  # a lambda with a default
        gone = ("delete", "validatingwebhookconfiguration", f"{RELEASE}.{NAMESPACE}", "--ignore-not-found")
        stack.callback(kubernetes_api.kubectl, *gone)
        first, second = operators
        yield Asking(
            api=kubernetes_api,
            objects=objects,
            working=first,
            standing_by=second,
            ports=ports,
            certificate=certificate,
            audit=audit / f"{ports[0]}.jsonl",
        )


@pytest.fixture
def asked(asking: Asking, request: pytest.FixtureRequest) -> Asking:
    """Make the API server call the working operator, or the standby; the change takes a moment to be in force."""
    which = getattr(request, "param", "working")
    asking.ask(asking.ports[0 if which == "working" else 1])
    wait_until(asking.is_refused, "the webhook is in force")
    return asking


@pytest.mark.parametrize("asked", ["working", "standing by"], indirect=True)
def test_what_only_another_spec_would_cure_is_refused_and_not_kept(asked: Asking) -> None:
    with pytest.raises(CommandError, match=r"denied the request: InvalidConfig: .*retention\.ms"):
        asked.write("refused", NEVER_VALID)
    assert asked.objects.get("kafkatopic", "refused") is None
    asked.write("accepted", {"partitions": 1, "replicationFactor": 1})
    asked.objects.wait_ready("kafkatopic", "accepted")


def test_slow_bodies_of_others_do_not_keep_the_api_server_from_asking(asked: Asking) -> None:
    context = ssl.create_default_context(cafile=asked.certificate.certificate)
    with ExitStack() as stack:
        for _ in range(40):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", asked.ports[0])))
            slow = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            slow.sendall(b"POST /validate HTTP/1.1\r\nHost: webhook\r\nContent-Length: 8000000\r\n\r\n{")
        with pytest.raises(CommandError, match="InvalidConfig"):
            asked.write("refused", NEVER_VALID)


def test_the_audit_names_the_user_who_wrote_an_object_and_what_was_done_for_it(asked: Asking) -> None:
    asked.write("audited", {"partitions": 1, "replicationFactor": 1})
    uid = asked.objects.wait_ready("kafkatopic", "audited")["metadata"]["uid"]

    def find(api: str) -> dict[str, Any] | None:
        records = [json.loads(line) for line in asked.audit.read_text().splitlines()]
        found = [each for each in records if each["api"] == api and each["resources"][0]["after"].get("uid") == uid]
        return found[0] if found else None

    wait_until(lambda: find("CREATE KafkaTopic") is not None, "the write is in the audit")
    wait_until(lambda: find("CreateTopic") is not None, "the operator's step is in the audit")
    written, done = find("CREATE KafkaTopic"), find("CreateTopic")
    assert written is not None
    assert done is not None
    assert written["principal"].removeprefix("Kubernetes:")
    assert written["resources"][0]["name"] == f"{NAMESPACE}/audited"
    assert done["client_id"] == f"kontroller-operator/{uid}/KafkaTopic/{NAMESPACE}/audited"


def test_what_may_come_right_is_kept_with_a_warning(asked: Asking) -> None:
    with pytest.raises(CommandError, match="NotEnoughBrokers"):
        asked.write("waiting", NOT_YET)
    ready = asked.objects.wait_ready("kafkatopic", "waiting", "False", "NotEnoughBrokers")
    assert ready["spec"]["replicationFactor"] == 2


def test_a_change_that_would_make_it_wrong_is_refused_and_what_is_there_stays_right(asked: Asking) -> None:
    asked.write("living", {"partitions": 2, "replicationFactor": 1})
    asked.objects.wait_ready("kafkatopic", "living")
    with pytest.raises(CommandError, match="InvalidConfig"):
        asked.write("living", {"partitions": 3, "replicationFactor": 1, "config": {"retention": "1"}})
    asked.write("living", {"partitions": 3, "replicationFactor": 1, "config": {"retention.ms": "1000"}})
    ready = asked.objects.wait_ready("kafkatopic", "living")
    assert len(ready["status"]["partitions"]) == 3


def test_a_topic_that_is_there_otherwise_is_seen(asked: Asking) -> None:
    asked.write("first", {"topicName": "shared", "partitions": 3, "replicationFactor": 1})
    asked.objects.wait_ready("kafkatopic", "first")
    asked.api.kubectl("delete", "kafkatopic", "first", "--namespace", NAMESPACE)
    with pytest.raises(CommandError, match="NotAdopted"):
        asked.write("second", {"topicName": "shared", "partitions": 2, "replicationFactor": 1})


def test_whoever_deletes_the_owner_of_a_topic_is_told_who_takes_it_over(asked: Asking) -> None:
    shared = {"topicName": "handed", "partitions": 1, "replicationFactor": 1}
    asked.write("owner", shared)
    asked.objects.wait_ready("kafkatopic", "owner")
    with pytest.raises(CommandError, match="ResourceConflict"):
        asked.write("heir", shared)
    asked.objects.wait_ready("kafkatopic", "heir", "False", "ResourceConflict")
    delete = ("delete", "kafkatopic", "owner", "--namespace", NAMESPACE, "--dry-run=server", "--warnings-as-errors")
    with pytest.raises(CommandError, match=f"topic handed stays with its data: {NAMESPACE}/heir takes it over"):
        asked.api.kubectl(*delete)


def test_the_deletion_of_a_cluster_that_objects_need_is_refused_unless_it_is_forced(asked: Asking) -> None:
    asked.write("needing", {"partitions": 1, "replicationFactor": 1})
    asked.objects.wait_ready("kafkatopic", "needing")
    delete = ("delete", "kafkacluster", "demo", "--namespace", NAMESPACE, "--dry-run=server")
    with pytest.raises(
        CommandError, match=rf"denied the request: KafkaCluster {NAMESPACE}/demo is still needed: \d+ Kafka"
    ):
        asked.api.kubectl(*delete)
    force = "kontroller.dev/delete-before-dependents"
    asked.objects.annotate("kafkacluster", "demo", f"{force}=true")
    asked.api.kubectl(*delete)
    asked.objects.annotate("kafkacluster", "demo", f"{force}-")


def test_who_is_not_there_keeps_nobody_from_writing_unless_that_is_wanted(asked: Asking) -> None:
    asked.write("early", {"partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete"})
    asked.objects.wait_ready("kafkatopic", "early")
    nobody = reserve_port()
    try:
        asked.ask(nobody)
        wait_until(lambda: not asked.is_refused(), "nobody answers, and all is written")
        asked.ask(nobody, failure_policy="Fail")
        wait_until(lambda: _is_failing(asked), "nobody answers, and nothing is written")
        asked.objects.annotate("kafkatopic", "early", "what-is-no-spec=is-written")
        asked.objects.delete("kafkatopic", "early")
        wait_until(lambda: asked.objects.get("kafkatopic", "early") is None, "the operator lets it go")
    finally:
        release_port(nobody)


def _is_failing(asked: Asking) -> bool:
    try:
        asked.write("unlucky", {"partitions": 1, "replicationFactor": 1})
    except CommandError as error:
        return "failed calling webhook" in str(error)
    return False


def test_a_topic_above_the_budget_of_its_namespace_is_refused_and_otherwise_stalled(asked: Asking) -> None:
    def give(**budget: Any) -> None:
        allowed = [{"namespace": NAMESPACE, "budget": budget}]
        asked.objects.patch("kafkacluster", "demo", {"spec": {"allowedNamespaces": allowed}})

    def use() -> dict[str, Any]:
        shown: list[dict[str, Any]] = asked.objects.status("kafkacluster", "demo").get("namespaces", [])
        return next(iter(shown), {})

    def is_shown(used: dict[str, Any]) -> bool:
        return used.get("partitions", 0) >= 2 and used.get("maxPartitions") == 1

    asked.write("counted", {"partitions": 2, "replicationFactor": 1})
    asked.objects.wait_ready("kafkatopic", "counted")
    give(maxPartitions=1, configs=[{"key": "retention.ms", "max": 1000}])
    wait_until(lambda: is_shown(use()), "the status shows the use")
    above = {"partitions": 3, "replicationFactor": 1}
    with pytest.raises(CommandError, match="denied the request: BudgetExceeded"):
        asked.write("above", above)
    asked.api.kubectl("delete", "validatingwebhookconfiguration", f"{RELEASE}.{NAMESPACE}")
    wait_until(lambda: _is_written(asked, "above", above), "the webhook is not in force")
    asked.objects.wait_ready("kafkatopic", "above", "False", "BudgetExceeded")
    asked.objects.wait_ready("kafkatopic", "counted")
    give(maxPartitions=1_000, configs=[{"key": "retention.ms", "max": 1000}])
    asked.objects.wait_ready("kafkatopic", "above")
    asked.write("above", {**above, "config": {"retention.ms": "-1"}})
    asked.objects.wait_ready("kafkatopic", "above", "False", "BudgetExceeded")
    asked.objects.patch("kafkacluster", "demo", {"spec": {"allowedNamespaces": None}})
    asked.objects.wait_ready("kafkatopic", "above")


def _is_written(asked: Asking, name: str, spec: dict[str, Any]) -> bool:
    try:
        asked.write(name, spec)
    except CommandError:
        return False
    return True


def test_other_namespaces_are_not_asked_about(asked: Asking) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}
    asked.api.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    try:
        asked.write("refused", NEVER_VALID, namespace=ELSEWHERE)
    finally:
        asked.api.kubectl("delete", "kafkatopic", "--all", "--namespace", ELSEWHERE)
