"""What the demo runs on: all parts started, side by side where they can be, and kubectl on them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devcluster.binaries import kubernetes_binaries
from devcluster.demo.stage import Stage
from devcluster.kafka import KafkaCluster
from devcluster.kontroller import ControllerProcess, OperatorProcess
from devcluster.kubernetes import KubernetesCluster, kubernetes_api
from devcluster.run_folder import RunFolder, run_folder
from devcluster.znodes import ClusterZnodes
from devcluster.zookeeper import ZooKeeper

NAMESPACE = "kafka"
RELEASE = "kontroller"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """Everything that runs, and how the demo looks at it."""

    stage: Stage
    folder: RunFolder
    kafka: KafkaCluster
    kubernetes: KubernetesCluster
    controller: ControllerProcess
    operator: OperatorProcess
    znodes: ClusterZnodes

    @property
    def kubectl_path(self) -> Path:
        return kubernetes_binaries() / "kubectl"

    def apply(self, example: str) -> None:
        """Applies a file of `examples/`, as the user would."""
        path = ROOT / "examples" / example
        output = self.kubernetes.kubectl("apply", "--server-side", "-f", "-", stdin=self._addressed(path.read_text()))
        self.stage.show(f"kubectl apply --server-side -f examples/{example}", output)

    def show_resources(self, kind: str) -> None:
        self.stage.show(f"kubectl get {kind}", self.kubernetes.kubectl("get", kind, "--namespace", NAMESPACE))

    def wait_until_ready(self, kind: str, name: str) -> None:
        self.stage.await_(lambda: self._is_ready(kind, name), f"{kind} {name} is Ready")

    def phase(self, kind: str, name: str) -> str:
        return str(self.status(kind, name).get("phase", ""))

    def status(self, kind: str, name: str) -> dict[str, Any]:
        """The status of a resource; empty where it has none yet."""
        shown = self.kubernetes.kubectl("get", kind, name, "--namespace", NAMESPACE, "--output", "json")
        return dict(json.loads(shown).get("status", {}))

    def has_ended(self, kind: str, name: str) -> bool:
        return self.phase(kind, name) in ("Completed", "Failed")

    def under_replicated(self) -> int:
        """How many partitions the KafkaCluster counts as under-replicated."""
        return int(self.status("kafkacluster", "demo").get("counts", {}).get("underReplicated", 0))

    def controller_log(self) -> str:
        return self.controller.process.log_path.read_text(errors="replace")

    def _is_ready(self, kind: str, name: str) -> bool:
        conditions = self.status(kind, name).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def _addressed(self, manifests: str) -> str:
        """The manifests with this machine's ZooKeeper and brokers in place of the example's."""
        documents = [document for document in yaml.safe_load_all(manifests) if document]
        for document in documents:
            if document["kind"] == "KafkaCluster":
                document["spec"]["zookeeper"]["connect"] = self.kafka.zookeeper_connect
                document["spec"]["bootstrapServers"] = self.kafka.bootstrap_servers
        return yaml.safe_dump_all(documents)


@contextmanager
def running_demo(stage: Stage) -> Iterator[Demo]:
    """Starts everything and ends it again, also after a failed start or Ctrl-C."""
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder("demo"))
        stage.step(
            "Start", "ZooKeeper, six unmodified Apache Kafka 3.9.1 brokers, etcd and a Kubernetes API server, all real."
        )
        zookeeper = stack.enter_context(ZooKeeper(folder))
        kafka = KafkaCluster(folder, zookeeper, brokers=6)
        stack.callback(kafka.close)
        with ThreadPoolExecutor(max_workers=1) as beside:
            starting = beside.submit(kafka.start)
            kubernetes = stack.enter_context(kubernetes_api(folder))
            starting.result()
        znodes = ClusterZnodes(stack.enter_context(zookeeper.client()))
        stage.await_(
            lambda: znodes.controller() is not None,
            "brokers 1 to 6 run, and one of them is the controller",
        )

        stage.step(
            "Our controller takes the role",
            "One transaction bumps the controller epoch and makes /controller ours; Kafka's own resigns.",
        )
        controller = stack.enter_context(ControllerProcess(folder, kafka.zookeeper_connect))
        stage.expect(
            znodes.controller() == controller.controller_id,
            f"/controller names {znodes.controller()}, which no broker is; epoch {znodes.read('/controller_epoch')}",
        )

        stage.step(
            "Our operator",
            "The chart installs the resources' definitions and a role; the operator runs with exactly that role.",
        )
        kubernetes.kubectl("create", "namespace", NAMESPACE)
        # Nothing runs the jobs that Helm would wait for.
        chart = str(ROOT / "charts" / "kontroller")
        kubernetes.helm("install", RELEASE, chart, "--no-hooks", "--namespace", NAMESPACE)
        kubeconfig = kubernetes.service_account_kubeconfig(NAMESPACE, f"{RELEASE}-operator")
        operator = stack.enter_context(OperatorProcess(folder, kubeconfig, namespaces=[NAMESPACE]))
        demo = Demo(
            stage=stage,
            folder=folder,
            kafka=kafka,
            kubernetes=kubernetes,
            controller=controller,
            operator=operator,
            znodes=znodes,
        )
        demo.apply("cluster.yaml")
        demo.wait_until_ready("kafkacluster", "demo")
        demo.show_resources("kafkacluster")
        yield demo
