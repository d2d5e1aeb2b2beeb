"""Kubernetes' servers, CoreDNS and kind, built from their Go modules into the cache."""

import json
from pathlib import Path

from devcluster.building import progress
from devcluster.building.cache import Entry, build_cached
from devcluster.building.go import build_programs, run_go

KUBERNETES_VERSION = "1.34.4"
COREDNS_VERSION = "1.12.4"
KIND_VERSION = "0.31.0"

_OLDEST_GO = (1, 25)
_OPTIONS = ("-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-o", "bin/")
# Functions that are not inlined compile in two thirds of the processor time, for which the first run waits. Go compiles the
# packages that the API server and a node's programs share only once, because the options are the same.
_QUICK_OPTIONS = ("-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false -l", "-o", "bin/")

# All plugins would double the work of the compiler: they include the clients of several clouds.
_COREDNS = """\
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	coremain.Run()
}
"""

_PAUSE = """\
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
"""


def kubernetes() -> Entry:
    """Return the cache entry of `kube-apiserver`. A first build takes some minutes."""
    return _kubernetes("kubernetes", "kube-apiserver")


def node_binaries() -> Path:
    """Return the folder with the other programs of a node: `kubelet`, `kube-controller-manager`, `kube-scheduler` and
    `kube-proxy`.
    """
    programs = ("kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy")
    return _kubernetes("kubernetes-node", *programs).folder() / "bin"


def _kubernetes(name: str, *programs: str) -> Entry:
    version_package = "k8s.io/component-base/version"
    major, minor, _patch = KUBERNETES_VERSION.split(".")
    stamps = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s -w", *(f"-X {version_package}.{name}={value}" for name, value in stamps.items())])
    packages = tuple(f"k8s.io/kubernetes/cmd/{program}" for program in programs)

    def build(folder: Path) -> None:
        with progress.step(f"Building {', '.join(programs)} {KUBERNETES_VERSION}") as step:
            _build(step, folder, _kubernetes_module(folder), flags, packages, _QUICK_OPTIONS)

    inputs = (flags, *_QUICK_OPTIONS, *packages)
    return Entry(name=f"{name}-{KUBERNETES_VERSION}", inputs=inputs, build=build)


def coredns_binary() -> Path:
    """Return the path of `coredns` with the plugins that a node's DNS uses."""
    module = _module("github.com/coredns/coredns", COREDNS_VERSION)

    def build(folder: Path) -> None:
        with progress.step(f"Building CoreDNS {COREDNS_VERSION}") as step:
            (folder / "coredns").mkdir()
            (folder / "coredns" / "main.go").write_text(_COREDNS)
            _build(step, folder, module, "-s -w", ("./coredns",), _QUICK_OPTIONS)

    name = f"coredns-{COREDNS_VERSION}"
    return build_cached(name, module, _COREDNS, *_QUICK_OPTIONS, build=build) / "bin" / "coredns"


def kind() -> Entry:
    """Return the cache entry of `kind`."""
    path = "sigs.k8s.io/kind"
    module = _module(path, KIND_VERSION)

    def build(folder: Path) -> None:
        with progress.step(f"Building kind {KIND_VERSION}") as step:
            _build(step, folder, module, "-s -w", (path,), _OPTIONS)

    return Entry(name=f"kind-{KIND_VERSION}", inputs=(module, *_OPTIONS), build=build)


def pause_binary() -> Path:
    """Return the path of a program that only waits for a signal: the first process of every pod."""

    def build(folder: Path) -> None:
        with progress.step("Building the pods' first process"):
            (folder / "pause.go").write_text(_PAUSE)
            options = ("-trimpath", "-ldflags", "-s -w", "-o", "bin/pause", "pause.go")
            run_go(folder, _OLDEST_GO, "build", *options, what="building pause", env={"CGO_ENABLED": "0"})

    return build_cached("pause-1", _PAUSE, build=build) / "bin" / "pause"


def _module(required: str, version: str, *more: str) -> str:
    lines = ["module kontroller.dev/devcluster", f"go {_OLDEST_GO[0]}.{_OLDEST_GO[1]}"]
    return "\n".join([*lines, f"require {required} v{version}", *more]) + "\n"


def _kubernetes_module(folder: Path) -> str:
    """Return a go.mod for Kubernetes that uses the releases of its staging modules.

    Kubernetes' own go.mod points the staging modules at folders of its repository, which a module download lacks.
    """
    (folder / "go.mod").write_text(_module("k8s.io/kubernetes", KUBERNETES_VERSION))
    download = ("mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES_VERSION}")
    described = json.loads(run_go(folder, _OLDEST_GO, *download, what="fetching Kubernetes' module"))
    edit = ("mod", "edit", "-json", described["GoMod"])
    own = json.loads(run_go(folder, _OLDEST_GO, *edit, what="reading Kubernetes' go.mod"))
    staging_version = "v0." + KUBERNETES_VERSION.removeprefix("1.")
    staging = [change["Old"]["Path"] for change in own["Replace"] if "Version" not in change["New"]]
    replacements = (f"replace {path} => {path} {staging_version}" for path in staging)
    return _module("k8s.io/kubernetes", KUBERNETES_VERSION, *replacements)


def _build(
    step: progress.Step,
    folder: Path,
    module: str,
    linker_flags: str,
    packages: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    (folder / "go.mod").write_text(module)
    build_programs(step, folder, _OLDEST_GO, packages, [*options, "-ldflags", linker_flags])
