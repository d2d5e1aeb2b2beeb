"""The demo's Kubernetes part: an API server that is built in parallel to the first part, and our operator."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from rich.markup import escape

from devcluster.clusters.kontroller import OperatorProcess
from devcluster.clusters.kubernetes import KubernetesCluster, kubernetes_api
from devcluster.clusters.run_folder import RunFolder
from devcluster.demo.stage import Stage
from devcluster.filling.fill import Filling, fill_meanwhile
from devcluster.filling.parts import API_SERVER
from devcluster.filling.programs import KUBECTL

NAMESPACE: Final = "kafka"
RELEASE: Final = "kontroller"
OPERATOR: Final = f"{RELEASE}-operator"
ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operated:
    """A cluster with an operator, as a user with kubectl sees it."""

    stage: Stage
    kubernetes: KubernetesCluster
    address: Mapping[str, object]
    """The address of the cluster on this machine, for the spec of its KafkaCluster."""

    @property
    def kubectl_path(self) -> Path:
        return KUBECTL.path()

    def apply(self, example: str) -> None:
        """Apply a file of `examples/`, as the user would."""
        path = ROOT / "examples" / example
        output = self.kubernetes.kubectl(
            "apply", "--server-side", "-f", "-", stdin=self._replace_address(path.read_text())
        )
        self.stage.show(f"kubectl apply --server-side -f examples/{example}", output)

    def show_resources(self, kind: str) -> None:
        self.stage.show(f"kubectl get {kind}", self.kubernetes.kubectl("get", kind, "--namespace", NAMESPACE))

    def wait_until_ready(self, kind: str, name: str) -> None:
        self.stage.await_(lambda: self._is_ready(kind, name), f"{kind} {name} is Ready")

    def wait_until_completed(self, kind: str, name: str) -> None:
        """Expect a run to complete; if it does not, show the resource."""
        self.stage.await_(lambda: self.has_ended(kind, name), f"{kind} {name} has ended")
        is_completed = self.phase(kind, name) == "Completed"
        self.stage.expect(is_completed, "the resource says Completed")
        if not is_completed:
            told = self.kubernetes.kubectl("get", kind, name, "--namespace", NAMESPACE, "--output", "yaml")
            self.stage.show(f"kubectl get {kind} {name} --output yaml", told)

    def has_ended(self, kind: str, name: str) -> bool:
        return self.phase(kind, name) in ("Completed", "Failed")

    def phase(self, kind: str, name: str) -> str:
        return str(self.status(kind, name).get("phase", ""))

    def status(self, kind: str, name: str) -> dict[str, Any]:
        """Return the status of a resource; empty if it has none yet."""
        shown = self.kubernetes.kubectl("get", kind, name, "--namespace", NAMESPACE, "--output", "json")
        return dict(json.loads(shown).get("status", {}))

    def count_under_replicated(self) -> int:
        """Return the number of under-replicated partitions in the KafkaCluster's status."""
        return int(self.status("kafkacluster", "demo").get("counts", {}).get("underReplicated", 0))

    def controller_kind(self) -> str:
        """Return the kind of controller that the KafkaCluster names: Kontroller or Kafka."""
        return str(self.controller().get("kind", ""))

    def controller(self) -> dict[str, Any]:
        """Return the controller in the KafkaCluster's status; empty if it names none."""
        return dict(self.status("kafkacluster", "demo").get("controller", {}))

    def _is_ready(self, kind: str, name: str) -> bool:
        conditions = self.status(kind, name).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def _replace_address(self, manifests: str) -> str:
        """Return the manifests with this machine's cluster in place of the example's."""
        documents = [document for document in yaml.safe_load_all(manifests) if document]
        for document in documents:
            if document["kind"] == "KafkaCluster":
                document["spec"] |= self.address
        return yaml.safe_dump_all(documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """An API server that is built and started in the background."""

    parts: Filling
    cluster: Future[KubernetesCluster]

    def wait(self) -> KubernetesCluster:
        """Return the running cluster; its build has full priority from now on. Raises BuildError and StartError."""
        with self.parts.hurry_builds():
            return self.cluster.result()


@contextmanager
def kubernetes_beside(stage: Stage, folder: RunFolder) -> Iterator[Starting]:
    """Start an API server in the background while the block runs; if it is missing, build it at a low priority first.

    A failed build is also shown on the stage at once. All ends with the block.
    """

    def tell(line: str) -> None:
        stage.console.print(f"  [dim]| {escape(line)}[/]")

    with (
        ExitStack() as servers,
        ThreadPoolExecutor(1) as beside,
        fill_meanwhile(API_SERVER, tell=tell, politely=True) as parts,
    ):

        def start() -> KubernetesCluster:
            parts.wait()
            return servers.enter_context(kubernetes_api(folder))

        yield Starting(parts=parts, cluster=beside.submit(start))


@contextmanager
def run_operator(
    stage: Stage, folder: RunFolder, kubernetes: KubernetesCluster, address: Mapping[str, object], *, example: str
) -> Iterator[Operated]:
    """Install the resources' definitions and an operator with the chart's roles, and apply the example of a
    KafkaCluster.

    The operator ends with the block.
    """
    stage.step(
        "Our operator",
        "The resources' definitions and roles, which are the chart's; the operator runs with exactly these roles.",
    )
    kubernetes.kubectl("create", "namespace", NAMESPACE)
    definitions = kubernetes.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    stage.show("kubectl apply --server-side -f crds", definitions)
    kubernetes.kubectl("apply", "--server-side", "-f", "-", stdin=_render_rights(kubernetes))
    kubernetes.wait_until_established()
    kubeconfig = kubernetes.service_account_kubeconfig(NAMESPACE, OPERATOR)
    with OperatorProcess(folder, kubeconfig, namespaces=[NAMESPACE]):
        operated = Operated(stage=stage, kubernetes=kubernetes, address=address)
        operated.apply(example)
        operated.wait_until_ready("kafkacluster", "demo")
        operated.show_resources("kafkacluster")
        yield operated


def _render_rights(kubernetes: KubernetesCluster) -> str:
    """Return the operator's service account and roles as the chart has them for one namespace."""
    chart = str(ROOT / "charts" / "kontroller")
    only = ("--set", f"watchNamespaces={{{NAMESPACE}}}", "--show-only", "templates/operator-rbac.yaml")
    return kubernetes.helm("template", RELEASE, chart, "--namespace", NAMESPACE, *only)
