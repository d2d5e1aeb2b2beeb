"""The chart as a user installs it, and the user's view of its state."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from devcluster.clusters.kubernetes import CommandError
from devcluster.node.pods import PodCluster
from devcluster.running.processes import wait_until

PROJECT = Path(__file__).parents[2]
CHART = str(PROJECT / "charts" / "kontroller")
VALUES = str(PROJECT / "examples" / "helm" / "values.yaml")
STANDBYS = ("--set", "controller.replicas=2,operator.replicas=2")
NAMESPACE = "kafka"
NAME = "kontroller"
BROKERS = (1, 2, 3)

KAFKA = f"statefulset/{NAME}-kafka"

_INSTALL_DEADLINE = "5m"
_SILENCE_S = 180.0
_ROLLOUT_DEADLINE_S = 600


class Release:
    """The release `kontroller` in a namespace. Entering installs it, leaving uninstalls it.

    `values`: a file of values; `options`: further options of helm.
    """

    def __init__(
        self, pods: PodCluster, *, namespace: str = NAMESPACE, values: str = VALUES, options: Sequence[str] = STANDBYS
    ) -> None:
        self.kubernetes = pods.kubernetes
        self.namespace = namespace
        self._options = ("--values", values, *options)
        owners = {"image": "kontroller", "kafka.image": "kontroller-kafka", "history.image": "kontroller-history"}
        self._images = ",".join(f"{owner}.repository={pods.images}{name}" for owner, name in owners.items())
        self.notes = ""

    def __enter__(self) -> Self:
        try:
            self.install()
        except BaseException:
            self.uninstall()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.uninstall()

    def install(self) -> None:
        """Run `helm install`, and wait until everything runs."""
        self.notes = self._apply("install", "--create-namespace")

    def upgrade(self, *values: str) -> str:
        """Run `helm upgrade` with values beside those of the installation; wait for the changed parts."""
        return self._apply("upgrade", *values)

    def uninstall(self) -> None:
        """Run `helm uninstall`, once."""
        if NAME in self.kubernetes.helm("list", "--short", "--namespace", self.namespace).split():
            where = ("--namespace", self.namespace)
            self.kubernetes.helm("uninstall", NAME, *where, "--wait", "--timeout", _INSTALL_DEADLINE)

    def run_tests(self) -> str:
        """Run `helm test` and return its output. Raises CommandError if a test fails."""
        return self.kubernetes.helm("test", NAME, "--namespace", self.namespace, "--timeout", "3m")

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the release's namespace."""
        return self.kubernetes.kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def journal(self) -> list[dict[str, Any]]:
        """Return the records of all controllers' journals, each in the order of its journal."""
        command = "cat /var/lib/kontroller/journal/*.jsonl 2>/dev/null || true"
        pods = self.kubectl("get", "pods", "--selector", "app.kubernetes.io/component=controller", "--output", "name")
        texts = [self.kubectl("exec", pod, "--", "sh", "-c", command) for pod in pods.split()]
        # The last line of a journal may be incomplete while it is written.
        return [json.loads(line) for text in texts for line in text.splitlines() if line.endswith("}")]

    def get(self, *arguments: str) -> Any:
        """Run `kubectl get` in the release's namespace, and parse the output."""
        return self.kubernetes.get("--namespace", self.namespace, *arguments)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply resources, in the namespace that they name or else in the release's."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=listed)

    def status(self, kind: str, name: str) -> dict[str, Any]:
        """Return the status of a resource; empty if it has none."""
        return dict(self.get(kind, name).get("status", {}))

    def wait_ready(self, kind: str, name: str, *, silence_s: float = _SILENCE_S) -> dict[str, Any]:
        """Wait until the resource is Ready in its present generation, and return its status."""
        self.wait_for(lambda: self._is_ready(kind, name), f"{kind} {name} is Ready", silence_s=silence_s)
        return self.status(kind, name)

    def wait_healthy(self) -> None:
        """Wait until all three brokers run, are ready, and every partition has all its replicas in sync."""
        self.kubectl("rollout", "status", KAFKA, "--timeout", f"{_ROLLOUT_DEADLINE_S}s")
        self.wait_for(self._is_healthy, "every partition has all its replicas in sync")

    def wait_for_preferred_leaders(self, topic: str) -> None:
        """Wait until every partition of a topic has its preferred leader."""

        def lead() -> bool:
            return all(each["leader"] == each["replicas"][0] for each in self.status("kafkatopic", topic)["partitions"])

        self.wait_for(lead, f"every partition of {topic} has its preferred leader")

    def wait_for(self, condition: Any, what: str, *, silence_s: float = _SILENCE_S) -> None:
        """Wait for the condition. It counts as false while the API server or a pod is away."""

        def holds() -> bool:
            try:
                return bool(condition())
            except CommandError:
                return False

        wait_until(holds, what, silence_s=silence_s)

    def controller_epoch(self) -> int:
        """Return the epoch of the controller, which rises with every new one; 0 while there is none."""
        return int(self.status("kafkacluster", "demo").get("controller", {}).get("epoch", 0))

    def _is_ready(self, kind: str, name: str) -> bool:
        found = self.get(kind, name)
        return any(
            condition["type"] == "Ready"
            and condition["status"] == "True"
            and condition["observedGeneration"] == found["metadata"]["generation"]
            for condition in found.get("status", {}).get("conditions", [])
        )

    def _is_healthy(self) -> bool:
        counts: dict[str, int] = self.status("kafkacluster", "demo")["counts"]
        return counts["brokers"] == len(BROKERS) and counts["offline"] == counts["underReplicated"] == 0

    def _apply(self, verb: str, *arguments: str) -> str:
        where = ("--namespace", self.namespace, *self._options, "--set", self._images)
        return self.kubernetes.helm(verb, NAME, CHART, *where, "--wait", "--timeout", _INSTALL_DEADLINE, *arguments)
