"""`make try` with a container engine: stand-ins for the engines and for kind record how they are called."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from devcluster import __main__ as devcluster
from devcluster.building.toolchain import BuildError
from devcluster.node import cgroups, pods
from devcluster.node.pods import NoCluster

REFUSED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NO_DAEMON = f"echo Client: 1; echo '{REFUSED}' >&2; exit 1"
NO_DAEMON_FOR_DOCKER_20 = f"echo Client: 1; echo 'ERROR: {REFUSED}'; echo errors pretty printing info >&2; exit 1"
BUILDX_MISSING = "ERROR: BuildKit is enabled but the buildx component is missing or broken."
NO_BUILDX = (
    f"""if [ "$DOCKER_BUILDKIT" = 1 ]; then echo '{BUILDX_MISSING}' >&2; """
    "echo '       https://docs.docker.com/go/buildx/' >&2; exit 1; fi"
)
ENGINE = """#!/bin/sh
echo "$(basename $0) $*" >> {calls}
case $1 in --version) echo "{version}";; info) {info};; build) {build};; save) echo image > "$3";; esac
"""
QUESTIONS = (" --version", " info", " build --help")
KIND = """#!/bin/sh
[ "$1" = version ] && echo "kind v0.31.0 go1.25.5 linux/amd64" && exit
echo "kind $KIND_EXPERIMENTAL_PROVIDER $*" >> {calls}
for name; do :; done
case "$1 $2" in
    "create cluster") {create}; echo "of $name" > "$4"; touch {clusters}/$name
        [ "$7" != --config ] || cat "$8" > {clusters}/$name;;
    "delete cluster") rm -f {clusters}/$name;;
    "load image-archive") grep -q image "$3";;
esac
"""


class Machine:
    """A machine that has nothing but the programs that a test puts there."""

    def __init__(self, folder: Path, path: Callable[[str], None]) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        self.seen: list[str] = []
        (folder / "clusters").mkdir()
        path(f"{folder}:/usr/bin:/bin")
        for name in ("kubectl", "helm"):
            self._put(name, f'#!/bin/sh\necho v{3 if name == "helm" else 1}.34.1 "$KUBECACHEDIR" "$KUBECONFIG"\n')

    def install_engine(self, name: str, *, version: str = "", info: str = ":", build: str = ":") -> None:
        versions = {"docker": "Docker version 28.2.2, build e6534b4", "podman": "podman version 4.3.1"}
        script = ENGINE.format(calls=self._calls, version=version or versions[name], info=info, build=build)
        self._put(name, script)

    def install_kind(self, *, fails_with: str = "") -> None:
        create = f"echo '{fails_with}' >&2; exit 1" if fails_with else ":"
        self._put("kind", KIND.format(calls=self._calls, clusters=self._folder / "clusters", create=create))

    def list_clusters(self) -> list[str]:
        """Return the names of the clusters that kind has."""
        return [path.name for path in (self._folder / "clusters").iterdir()]

    def read_settings(self) -> str:
        """Return the settings of the only cluster."""
        (cluster,) = self.list_clusters()
        return (self._folder / "clusters" / cluster).read_text()

    def list_calls(self) -> list[str]:
        """Return the commands that changed something, without the temporary folders in them."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [" ".join(map(_shorten, line.split())) for line in lines if not line.endswith(QUESTIONS)]

    def _put(self, name: str, script: str) -> None:
        program = self._folder / name
        program.write_text(script)
        program.chmod(0o755)


def _shorten(word: str) -> str:
    return Path(word).name if word.startswith("/") else word


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without an engine, that cannot be a node."""
    for name in ("KUBECONFIG", "KONTROLLER_IMAGES", "KIND_EXPERIMENTAL_PROVIDER", "KUBEBUILDER_ASSETS", "KEEP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(pods, "find_missing_for_node", lambda: "it needs Linux and root")
    monkeypatch.setattr(cgroups, "is_version_1", lambda: True)
    (tmp_path / "bin").mkdir()
    return Machine(tmp_path / "bin", lambda path: monkeypatch.setenv("PATH", path))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Runs `make try`, and something on its cluster in place of the wait for Ctrl-C."""

    def try_images(on_cluster: Callable[[], None] = lambda: None) -> None:
        monkeypatch.setattr(signal, "pause", on_cluster)
        devcluster.try_images()

    return try_images


def list_builds(engine: str) -> list[str]:
    base = "--build-arg KONTROLLER_IMAGE=docker.io/library/kontroller:0.1.0"
    return [
        f"{engine} build --file images/{image}/Containerfile {base} --tag docker.io/library/{image}:0.1.0 ."
        for image in ("kontroller", "kontroller-kafka")
    ]


def run_kubectl(printed: str) -> list[str]:
    """Run `kubectl` after the command that `make try` has printed; returns the words of the stand-in's output."""
    (export,) = [line for line in printed.splitlines() if "export PATH=" in line]
    asked = subprocess.run(["sh", "-c", f"{export}; kubectl"], capture_output=True, text=True, check=True)
    return asked.stdout.split()


def test_the_clients_of_a_cluster_of_kind_reach_it_and_its_images_are_those_of_the_engine(
    machine: Machine, use: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install_engine("docker")
    machine.install_kind()
    reached = []

    def ask_for_cluster() -> None:
        _version, _cache, kubeconfig = run_kubectl(capsys.readouterr().out)
        reached.append(Path(kubeconfig).read_text())

    use(ask_for_cluster)
    calls = machine.list_calls()
    (name,) = [call.split()[-1] for call in calls if " create " in call]
    assert (name.startswith("try-"), "_" in name) == (True, False), "kind refuses an underscore"
    assert reached == [f"of {name}\n"]
    assert calls[:2] == list_builds("docker")
    assert [call for call in calls if " load " in call] == [
        f"kind docker load image-archive {image}.tar --name {name}" for image in ("kontroller", "kontroller-kafka")
    ]
    assert calls[-1] == f"kind docker delete cluster --kubeconfig kubeconfig --name {name}"


def test_the_clients_of_a_cluster_remember_nothing_of_an_earlier_one_at_its_address(
    machine: Machine, use: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install_engine("docker")
    machine.install_kind()
    caches = []

    def ask_for_cache() -> None:
        _version, cache, _kubeconfig = run_kubectl(capsys.readouterr().out)
        caches.append(cache)

    use(ask_for_cache)
    use(ask_for_cache)
    first, second = caches
    assert first != second


def test_the_share_of_the_work_that_is_done_ends_at_100_percent_when_the_cluster_is_ready(
    machine: Machine, use: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install_engine("docker")
    machine.install_kind()
    shown = []
    use(lambda: shown.extend(capsys.readouterr().err.splitlines()))
    assert [line for line in shown if line.endswith(" %")] == [
        f"Kubernetes with the images: {percent} %" for percent in (20, 40, 60, 80, 100)
    ]


def test_ctrl_c_deletes_the_cluster_and_is_no_failure(machine: Machine, use: Callable[..., None]) -> None:
    machine.install_engine("docker")
    machine.install_kind()

    def interrupt() -> None:
        raise KeyboardInterrupt

    use(interrupt)
    assert " delete cluster " in machine.list_calls()[-1]


def test_an_engine_that_does_not_answer_is_left_for_one_that_does(machine: Machine, use: Callable[..., None]) -> None:
    machine.install_engine("docker", info=NO_DAEMON)
    machine.install_engine("podman")
    machine.install_kind()
    use()
    calls = machine.list_calls()
    assert calls[:2] == list_builds("podman")
    assert {call.split()[1] for call in calls if call.startswith("kind")} == {"podman"}


@pytest.mark.parametrize("answer", [NO_DAEMON, NO_DAEMON_FOR_DOCKER_20], ids=["docker-28", "docker-20"])
def test_an_engine_that_does_not_answer_is_named_with_its_reason(
    machine: Machine, use: Callable[..., None], answer: str
) -> None:
    machine.install_engine("docker", info=answer)
    with pytest.raises(NoCluster) as refused:
        use()
    assert str(refused.value).splitlines()[:3] == [
        "No cluster can run pods here.",
        f"kind: docker does not answer: {'ERROR: ' if answer == NO_DAEMON_FOR_DOCKER_20 else ''}{REFUSED}",
        "A node without a container engine: it needs Linux and root",
    ]
    assert machine.list_calls() == [], "nothing is built in vain"


def test_an_engine_without_its_builder_is_named_before_anything_is_built(
    machine: Machine, use: Callable[..., None]
) -> None:
    machine.install_engine("docker", build=NO_BUILDX)
    with pytest.raises(NoCluster, match=f"kind: docker cannot build images: {BUILDX_MISSING}\n"):
        use()
    assert machine.list_calls() == []


def test_the_program_docker_of_podman_is_not_used_as_docker(machine: Machine, use: Callable[..., None]) -> None:
    machine.install_engine("docker", version="podman version 4.3.1")
    machine.install_engine("podman")
    machine.install_kind()
    use()
    assert {call.split()[0] for call in machine.list_calls()} == {"podman", "kind"}


def test_a_node_of_our_own_is_used_with_the_reason_against_kind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install_engine("docker", build=NO_BUILDX)
    monkeypatch.setattr(pods, "find_missing_for_node", lambda: None)
    pods.plan_preparation(pods.CHART_IMAGES)
    assert f"without kind (docker cannot build images: {BUILDX_MISSING})" in capsys.readouterr().err


def test_a_machine_without_an_engine_is_told_what_to_start(machine: Machine, use: Callable[..., None]) -> None:
    with pytest.raises(NoCluster, match=r"docker and podman not found on the PATH\n.*\nStart Docker or Podman"):
        use()


def test_a_cluster_that_cannot_be_created_is_deleted_and_its_error_is_shown(
    machine: Machine, use: Callable[..., None]
) -> None:
    machine.install_engine("docker")
    machine.install_kind(fails_with="no space left on device")
    with pytest.raises(BuildError, match=r"creating a cluster of kind failed(?s:.*)no space left on device"):
        use()
    assert " delete " in machine.list_calls()[-1]


def test_kubernetes_starts_on_cgroups_of_version_1(
    machine: Machine, use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet of Kubernetes 1.35 and later refuses to, unless its settings say otherwise."""
    machine.install_engine("docker")
    machine.install_kind()
    use(lambda: machine.seen.append(machine.read_settings()))
    monkeypatch.setattr(cgroups, "is_version_1", lambda: False)
    use(lambda: machine.seen.append(machine.read_settings()))
    on_version_1, on_version_2 = machine.seen
    (patch,) = yaml.safe_load(on_version_1)["kubeadmConfigPatches"]
    assert yaml.safe_load(patch)["failCgroupV1"] is False
    assert on_version_2 == ""


def test_the_cluster_of_a_killed_run_is_deleted_by_the_next_run(machine: Machine, use: Callable[..., None]) -> None:
    machine.install_engine("docker")
    machine.install_kind()
    with subprocess.Popen([sys.executable, "-m", "devcluster", "try"], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert any(line.startswith("Ready.") for line in killed.stdout)
        killed.kill()
    (left_over,) = machine.list_clusters()
    use(lambda: machine.seen.extend(machine.list_clusters()))
    (seen,) = machine.seen
    assert seen != left_over
    assert machine.list_clusters() == []


def test_the_cluster_of_another_run_is_left_alone(machine: Machine, use: Callable[..., None]) -> None:
    machine.install_engine("docker")
    machine.install_kind()

    def use_another() -> None:
        use(lambda: machine.seen.extend(machine.list_clusters()))

    use(use_another)
    assert len(machine.seen) == 2, "both exist"
    assert machine.list_clusters() == []


def test_a_cluster_of_the_user_needs_a_registry_before_anything_is_built(
    machine: Machine, use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install_engine("docker")
    monkeypatch.setenv("KUBECONFIG", "/home/user/.kube/config")
    with pytest.raises(NoCluster, match=r"set KONTROLLER_IMAGES to the registry .* or unset KUBECONFIG"):
        use()
    assert machine.list_calls() == []


def test_a_cluster_of_the_user_is_reached_and_the_chart_is_to_pull_from_its_registry(
    machine: Machine,
    use: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/user/.kube/config")
    monkeypatch.setenv("KONTROLLER_IMAGES", "registry.example.com/team/")
    use()
    printed = capsys.readouterr().out
    assert "`--set image.registry=registry.example.com/team` to helm install" in printed
    assert "export PATH=" in printed
    assert machine.list_calls() == []
