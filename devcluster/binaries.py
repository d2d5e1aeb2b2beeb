"""The Kubernetes API server, kubectl, etcd and helm, built from their Go modules into the cache."""

import json
from pathlib import Path

from devcluster import progress
from devcluster.cache import cached
from devcluster.toolchain import require_go, run

KUBERNETES_VERSION = "1.34.4"
ETCD_VERSION = "3.6.7"
HELM_VERSION = "3.20.2"

_OLDEST_GO = (1, 25)
# Two compilers at a time: a link of the API server takes over a gigabyte.
_BUILD = ("build", "-p", "2", "-mod=mod", "-trimpath", "-o", "bin/")


def kubernetes_binaries() -> Path:
    """The folder with `kube-apiserver` and `kubectl`; a first build takes some minutes."""
    version_package = "k8s.io/component-base/version"
    major, minor, _patch = KUBERNETES_VERSION.split(".")
    stamps = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s -w", *(f"-X {version_package}.{name}={value}" for name, value in stamps.items())])
    packages = ("k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl")

    def build(folder: Path) -> None:
        with progress.step(f"Building kube-apiserver and kubectl {KUBERNETES_VERSION}"):
            _build(folder, _kubernetes_module(folder), flags, packages)

    return cached(f"kubernetes-{KUBERNETES_VERSION}", flags, *_BUILD, *packages, build=build) / "bin"


def etcd_binary() -> Path:
    """The path of `etcd`."""
    module = _module("go.etcd.io/etcd/server/v3", ETCD_VERSION)

    def build(folder: Path) -> None:
        with progress.step(f"Building etcd {ETCD_VERSION}"):
            _build(folder, module, "-s -w", ("go.etcd.io/etcd/server/v3",))
            # Go names a binary after the last element of its path that is no version.
            (folder / "bin" / "server").rename(folder / "bin" / "etcd")

    return cached(f"etcd-{ETCD_VERSION}", module, *_BUILD, build=build) / "bin" / "etcd"


def helm_binary() -> Path:
    """The path of `helm`."""
    module = _module("helm.sh/helm/v3", HELM_VERSION)
    flags = f"-s -w -X helm.sh/helm/v3/internal/version.version=v{HELM_VERSION}"

    def build(folder: Path) -> None:
        with progress.step(f"Building helm {HELM_VERSION}"):
            _build(folder, module, flags, ("helm.sh/helm/v3/cmd/helm",))

    return cached(f"helm-{HELM_VERSION}", module, flags, *_BUILD, build=build) / "bin" / "helm"


def _module(required: str, version: str, *more: str) -> str:
    lines = ["module kontroller.dev/devcluster", f"go {_OLDEST_GO[0]}.{_OLDEST_GO[1]}"]
    return "\n".join([*lines, f"require {required} v{version}", *more]) + "\n"


def _kubernetes_module(folder: Path) -> str:
    """Kubernetes' own go.mod points its staging modules at folders of its repository: use their releases instead."""
    go, environment = require_go(_OLDEST_GO)
    (folder / "go.mod").write_text(_module("k8s.io/kubernetes", KUBERNETES_VERSION))
    download = [go, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES_VERSION}"]
    described = run(download, what="fetching Kubernetes' module", cwd=folder, env=environment)
    edit = [go, "mod", "edit", "-json", json.loads(described)["GoMod"]]
    own = json.loads(run(edit, what="reading Kubernetes' go.mod", cwd=folder, env=environment))
    staging_version = "v0." + KUBERNETES_VERSION.removeprefix("1.")
    staging = [change["Old"]["Path"] for change in own["Replace"] if "Version" not in change["New"]]
    replacements = (f"replace {path} => {path} {staging_version}" for path in staging)
    return _module("k8s.io/kubernetes", KUBERNETES_VERSION, *replacements)


def _build(folder: Path, module: str, linker_flags: str, packages: tuple[str, ...]) -> None:
    go, environment = require_go(_OLDEST_GO)
    (folder / "go.mod").write_text(module)
    command = [go, *_BUILD, "-ldflags", linker_flags, *packages]
    run(command, what=f"building {', '.join(packages)}", cwd=folder, env=environment)
