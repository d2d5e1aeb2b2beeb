"""The kinds of stop. Each begins with all preferred leaders, and ends when every partition has all its replicas in sync.

A stop in order ends when the preferred leaders are back, too. After a crash they would wait for the controller's next
check, so `give_leaders_back` elects them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from devcluster.node.pods import PodCluster
from tests.e2e.release import KAFKA, NAME, Release
from tests.e2e.toolbox import Load, Toolbox
from tests.e2e.without_release.killing import kill_pod

_BROKER: Final = f"{NAME}-kafka-1"
_CONTROLLERS: Final = f"statefulset/{NAME}-controller"
_AT_REST: Final = 3_000
"""Messages of a producer while nothing stops."""
_BY_FORCE: Final = ("--grace-period=0", "--force")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An installation of the chart, with Kafka's tools and a producer beside it."""

    pods: PodCluster
    release: Release
    toolbox: Toolbox
    load: Load
    """A producer that has run for a while."""


def give_leaders_back(scene: Scene) -> None:
    """Elect the preferred leaders of all partitions, and wait until they lead."""
    elect = ("kafka-leader-election.sh", "--election-type", "preferred", "--all-topic-partitions")
    scene.toolbox.run(*elect, "--bootstrap-server", scene.toolbox.bootstrap)
    scene.release.wait_for_preferred_leaders(scene.load.topic)


def stop_nothing(scene: Scene) -> None:
    """Wait. The longest gap is then that of the machine itself."""
    enough = scene.load.count_acknowledged() + _AT_REST
    scene.release.wait_for(lambda: scene.load.count_acknowledged() > enough, "the producer has been watched at rest")


def restart_all_brokers(scene: Scene) -> None:
    scene.release.kubectl("rollout", "restart", KAFKA)
    scene.release.wait_healthy()
    scene.release.wait_for_preferred_leaders(scene.load.topic)


def delete_a_broker(scene: Scene) -> None:
    _replace(scene.release, _BROKER)
    scene.release.wait_for_preferred_leaders(scene.load.topic)


def delete_a_broker_by_force(scene: Scene) -> None:
    _replace(scene.release, _BROKER, *_BY_FORCE)


def kill_a_broker(scene: Scene) -> None:
    """Kill the broker's process with SIGKILL; the pod restarts its container, with the same address."""
    _kill(scene, _BROKER)
    scene.release.wait_healthy()


def delete_the_controller(scene: Scene) -> None:
    epoch = scene.release.controller_epoch()
    scene.release.kubectl("delete", "pod", _controller(scene.release))
    _wait_for_a_controller_after(scene.release, epoch)


def kill_the_controller(scene: Scene) -> None:
    """Kill the controller's process with SIGKILL; the standby takes over when its session has ended."""
    epoch = scene.release.controller_epoch()
    _kill(scene, _controller(scene.release))
    _wait_for_a_controller_after(scene.release, epoch)


STOPS: Final[dict[str, Callable[[Scene], None]]] = {
    "nothing stops": stop_nothing,
    "all brokers restart, one by one": restart_all_brokers,
    "a broker's pod is deleted": delete_a_broker,
    "a broker's pod is deleted by force": delete_a_broker_by_force,
    "a broker is killed (SIGKILL)": kill_a_broker,
    "the controller's pod is deleted": delete_the_controller,
    "the controller is killed (SIGKILL)": kill_the_controller,
}


def _replace(release: Release, pod: str, *options: str) -> None:
    """Delete a broker's pod, and wait until another one with its name is healthy."""
    before = _uid(release, pod)
    release.kubectl("delete", "pod", pod, *options)
    release.wait_for(lambda: _uid(release, pod) != before, f"there is another pod {pod}")
    release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s")
    release.wait_healthy()


def _uid(release: Release, pod: str) -> str:
    return str(release.get("pod", pod)["metadata"]["uid"])


def _kill(scene: Scene, pod: str) -> None:
    def restarts() -> int:
        (container,) = scene.release.get("pod", pod)["status"]["containerStatuses"]
        return int(container["restartCount"])

    before = restarts()
    with kill_pod(scene.pods, scene.release, pod):
        scene.release.wait_for(lambda: restarts() > before, f"the process of {pod} was killed")
    scene.release.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=300s")


def _controller(release: Release) -> str:
    """Return the pod of the controller that has the role."""
    return f"{NAME}-controller-{1000 - int(release.status('kafkacluster', 'demo')['controller']['id'])}"


def _wait_for_a_controller_after(release: Release, epoch: int) -> None:
    release.wait_for(lambda: release.controller_epoch() > epoch, "there is another controller")
    release.kubectl("rollout", "status", _CONTROLLERS, "--timeout=300s")
    release.wait_healthy()
