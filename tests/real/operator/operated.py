"""Objects in an operated namespace, as a user with kubectl sees them, and the operator's process."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from confluent_kafka import Producer

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import Move
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import ZkSession
from controller_core.zk.throttle_writes import Throttles
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ConditionTimeoutError, ManagedProcess, wait_until
from devcluster.running.scraping import open_locally
from tests.real.operator.operator_process import WRITE_MARK
from tests.real.operator.witnesses import limit_without_zookeeper

PROJECT = Path(__file__).parents[3]
NAMESPACE = "operated"
RELEASE = "kontroller"
FINALIZER = "kontroller.dev/finalizer"
RECORD_BYTES, RECORDS = 100_000, 200
ANSWER_S = 60
"""Much longer than a busy operator needs, because tests take a late answer for a failure."""
ALWAYS = {"KafkaCluster": {"diskNearlyFullPercent": 100}}
"""Added to the spec of each object of the kind, because a full disk of this machine must not fail a test."""
KINDS = (
    "kafkatopics",
    "rebalanceplans",
    "partitionreassignments",
    "preferredelections",
    "featuresets",
    "kafkaclusters",
)

_numbers = count(1)


class Objects:
    """The objects of an operated namespace, as a user with kubectl sees them."""

    def __init__(self, api: KubernetesCluster, namespace: str = NAMESPACE) -> None:
        self._api = api
        self._namespace = namespace

    def apply(self, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> None:
        body = {
            "apiVersion": "kontroller.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": self._namespace, **metadata},
            "spec": {**ALWAYS.get(kind, {"clusterRef": {"name": "demo"}}), **spec},
        }
        self._api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(body))

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._api.get(kind, name, "--namespace", self._namespace)
        except CommandError as error:
            if "NotFound" not in str(error):
                raise
            return None
        return found

    def every(self, kind: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._api.get(kind, "--namespace", self._namespace)["items"]
        return items

    def status(self, kind: str, name: str) -> dict[str, Any]:
        status: dict[str, Any] = (self.get(kind, name) or {}).get("status", {})
        return status

    def condition(self, kind: str, name: str, type_: str = "Ready") -> dict[str, Any]:
        return _find_condition(self.get(kind, name) or {}, type_)

    def delete(self, kind: str, name: str) -> None:
        self._api.kubectl("delete", kind, name, "--namespace", self._namespace, "--wait=false")

    def patch(self, kind: str, name: str, patch: dict[str, Any], *, subresource: str | None = None) -> None:
        arguments = ["--namespace", self._namespace, "--type=merge", "-p", json.dumps(patch)]
        if subresource is not None:
            arguments.append(f"--subresource={subresource}")
        self._api.kubectl("patch", kind, name, *arguments)

    def annotate(self, kind: str, name: str, annotation: str) -> None:
        self._api.kubectl("annotate", "--overwrite", kind, name, annotation, "--namespace", self._namespace)

    def events(self, name: str) -> list[str]:
        """Return the reasons of the events about an object."""
        return [reason for reason, _ in self.count_events(name)]

    def count_events(self, name: str) -> list[tuple[str, int]]:
        """Return the reasons of the events about an object, with their counts."""
        found = self._api.get("events", "--namespace", self._namespace)["items"]
        return [(each["reason"], each["count"]) for each in found if each["involvedObject"]["name"] == name]

    def wait_for_event(self, name: str, reason: str) -> None:
        """Wait for an event about an object: the operator posts it beside the status, before or after."""
        wait_until(lambda: reason in self.events(name), f"{name} has the event {reason}")

    def wait_gone(self, kind: str, name: str) -> None:
        """Wait until the API server has deleted an object."""
        wait_until(lambda: self.get(kind, name) is None, f"{kind} {name} is gone")

    def wait_for(self, kind: str, name: str, condition: str) -> None:
        """Wait as a script does, with repeated short waits of kubectl."""
        wait = (
            "wait",
            f"--for=condition={condition}",
            f"{kind}/{name}",
            "--namespace",
            self._namespace,
            "--timeout=2s",
        )

        def holds() -> bool:
            try:
                self._api.kubectl(*wait)
            except CommandError:
                return False
            return True

        wait_until(holds, f"{kind} {name} has the condition {condition}")

    def wait_ready(self, kind: str, name: str, status: str = "True", reason: str | None = None) -> dict[str, Any]:
        """Wait until Ready has this status for the present generation; returns that object.

        Each look is one request, because the operator may write between two.
        """
        found: dict[str, Any] = {}

        def is_ready() -> bool:
            nonlocal found
            found = self.get(kind, name) or {}
            ready = _find_condition(found, "Ready")
            return (
                ready.get("status") == status
                and ready["observedGeneration"] == found["metadata"]["generation"]
                and reason in (None, ready["reason"])
            )

        what = f"{kind} {name} has Ready={status} {reason or ''}"
        try:
            wait_until(is_ready, what)
        except ConditionTimeoutError as error:
            raise AssertionError(f"{error}; it is {json.dumps(found.get('status'), indent=1)}") from error
        return found


class Operator:
    """An operator process on the API server; with a lease it works only while it holds the lease."""

    def __init__(
        self,
        folder: RunFolder,
        kubeconfig: Path,
        *,
        lease: str | None = None,
        env: Mapping[str, str] | None = None,
        namespaces: Sequence[str] = (NAMESPACE,),
    ) -> None:
        """Configure the operator. `env`: further environment variables; `namespaces`: those that it watches."""
        self._folder = folder
        self._namespaces = namespaces
        self._kubeconfig = kubeconfig
        leading = {"KONTROLLER_LEASE": lease, "KONTROLLER_LEASE_NAMESPACE": NAMESPACE} if lease else {}
        self._env = {**leading, **(env or {})}
        self._port = reserve_port()
        self.metrics_port: int | None = None
        """The port of the metrics, if the environment turns them on."""
        self.process = self._make(None)

    def start(self, *, die_after: int | None = None) -> None:
        """Start the operator, and wait until it is ready unless it is going to die."""
        self.process = self._make(die_after)
        if die_after is None:
            self.process.start()
        else:
            self.process.spawn()

    def wait_until_dead(self) -> None:
        wait_until(lambda: not self.process.is_running, "the operator has died")

    def trouble(self) -> str | None:
        """Return the reason why it is not ready, from its probe; None if it is ready."""
        try:
            with open_locally(f"http://127.0.0.1:{self._port}/readyz", timeout_s=ANSWER_S):
                return None
        except HTTPError as error:
            return error.read().decode()

    def count(self, kind: str) -> int:
        """Return the number of objects of a kind in its metrics."""
        with open_locally(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout_s=ANSWER_S) as answer:
            lines = answer.read().decode().splitlines()
        return next(int(float(line.split()[-1])) for line in lines if f'objects{{kind="{kind}"}}' in line)

    def resident_bytes(self) -> int:
        """Return its resident memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        return self.process.log_path.read_text(errors="replace")

    def writes(self) -> Counter[str]:
        """Return the writes since the log began, by name."""
        return Counter(line.removeprefix(WRITE_MARK) for line in self.log().splitlines() if line.startswith(WRITE_MARK))

    def close(self) -> None:
        self.process.kill()
        release_port(self._port)

    def _make(self, die_after: int | None) -> ManagedProcess:
        name = f"operator-{next(_numbers)}"
        arguments = [",".join(self._namespaces), str(self._port), *([str(die_after)] if die_after else [])]
        return ManagedProcess(
            name,
            [sys.executable, "-m", "tests.real.operator.operator_process", *arguments],
            log_path=self._folder.log(name),
            env={
                "KUBECONFIG": str(self._kubeconfig),
                "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}",
                **self._env,
            },
            ready=lambda: accepts(self._port),
        )


def fill(kafka: KafkaCluster | KRaftCluster, topic: str, login: Mapping[str, str] | None = None) -> None:
    """Fill partition 0 so that a throttled move takes long; the other partitions stay empty.

    `login`: the client's properties beside the servers.
    """
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all", **(login or {})})
    for number in range(RECORDS):
        producer.produce(topic, number.to_bytes(4, "big") * (RECORD_BYTES // 4), partition=0)
        producer.poll(0)
    assert producer.flush(120) == 0


@contextmanager
def slow_down(kafka: KafkaCluster | KRaftCluster, topic: str) -> Iterator[None]:
    """Throttle the replication of partition 0 from broker 1 to broker 3."""
    if isinstance(kafka, KRaftCluster):
        limit_without_zookeeper(kafka, topic, RECORD_BYTES)
        try:
            yield
        finally:
            limit_without_zookeeper(kafka, topic, None)
        return
    moves = {
        TopicPartition(TopicName(topic), PartitionId(0)): Move(origin=(BrokerId(1),), target=(BrokerId(3),)),
    }
    _act_over_zookeeper(kafka, lambda zk: Throttles(zk).set(topic, moves, RECORD_BYTES))
    try:
        yield
    finally:
        _act_over_zookeeper(kafka, lambda zk: Throttles(zk).remove(topic))


def _act_over_zookeeper(kafka: KafkaCluster, act: Callable[[ZkSession], Awaitable[None]]) -> None:
    async def run() -> None:
        zk = await KazooSession.connect(kafka.zookeeper_connect, session_timeout_ms=30_000, connect_timeout_ms=30_000)
        try:
            await act(zk)
        finally:
            await zk.close()

    asyncio.run(run())


@contextmanager
def operate_namespace(api: KubernetesCluster, connect: str | None = None, **cluster: Any) -> Iterator[Objects]:
    """Make the namespace with the KafkaCluster `demo`, at a ZooKeeper or with the given fields of its spec.

    At the end its objects are deleted, with their remaining finalizers and events.
    """
    spec = {**({"zookeeper": {"connect": connect}} if connect is not None else {}), **cluster}
    api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(PROJECT / "crds"))
    api.wait_until_established()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
    install_chart(api, NAMESPACE)
    found = Objects(api)
    # An existing KafkaCluster was made for another Kafka cluster, and the cluster of an object cannot change.
    _delete_all(api, found, "kafkacluster")
    wait_until(lambda: _is_taken(found, spec), "the KafkaCluster is taken")
    try:
        yield found
    finally:
        _empty(api, found)


def _empty(api: KubernetesCluster, found: Objects) -> None:
    for kind in KINDS:
        _delete_all(api, found, kind)
    # Events outlive their objects, and the next test with objects of the same names counts its own.
    api.kubectl("delete", "events", "--all", "--namespace", NAMESPACE, "--wait=false")


def _delete_all(api: KubernetesCluster, found: Objects, kind: str) -> None:
    """Delete the objects, although no operator is there to remove its finalizers."""
    api.kubectl("delete", kind, "--all", "--namespace", NAMESPACE, "--wait=false")
    for each in found.every(kind):
        name, patch = each["metadata"]["name"], '{"metadata":{"finalizers":null}}'
        try:
            api.kubectl("patch", kind, name, "--namespace", NAMESPACE, "--type=merge", "-p", patch)
        except CommandError:
            if found.get(kind, name) is not None:  # an operator may have been faster
                raise


@contextmanager
def run_operator(
    folder: RunFolder,
    api: KubernetesCluster,
    *,
    lease: str | None = None,
    env: Mapping[str, str] | None = None,
    namespaces: Sequence[str] = (NAMESPACE,),
) -> Iterator[Operator]:
    """Run an operator with exactly the rights that the chart gives it; assert that nothing unexpected happened to it."""
    kubeconfig = api.service_account_kubeconfig(NAMESPACE, f"{RELEASE}-operator")
    running = Operator(folder, kubeconfig, lease=lease, env=env, namespaces=namespaces)
    try:
        running.start()
        yield running
    finally:
        running.close()
    assert "unexpectedly" not in running.log(), running.log()[-4000:]


def install_chart(kubernetes_api: KubernetesCluster, *namespaces: str) -> None:
    """Install the chart without the definitions, which all tests share. Its roles are real; nothing runs pods or jobs.

    `namespaces`: those that the operator may work in.
    """
    values = ("--set", "crds.install=false", "--set", f"watchNamespaces={{{','.join(namespaces)}}}")
    chart = str(PROJECT / "charts" / RELEASE)
    kubernetes_api.helm("upgrade", "--install", RELEASE, chart, "--no-hooks", "--namespace", NAMESPACE, *values)


def _find_condition(found: Mapping[str, Any], type_: str) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == type_), {})


def _is_taken(objects: Objects, spec: dict[str, Any]) -> bool:
    """Return True once the KafkaCluster is accepted: a definition is established a moment before its objects are
    served.
    """
    try:
        objects.apply("KafkaCluster", "demo", spec)
    except CommandError:
        return False
    return True
