"""cert-manager, which signs the certificates of the examples: its definitions and its controller.

The definitions are those of a current release. The controller is the last release whose program is in the module that
the Go proxy serves; later releases keep the program in modules that are only in the repository. It serves the same
`cert-manager.io/v1`. Its webhook is not needed: the controller reports the same errors in a status, only later.
"""

import json
import shutil
from pathlib import Path
from typing import Final

import yaml

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.building.go import build_programs, run_go

VERSION: Final = "1.21.2"
CONTROLLER_VERSION: Final = "1.11.5"
_MODULE: Final = "github.com/cert-manager/cert-manager"
_OLDEST_GO: Final = (1, 25)
_PLACE: Final = "deploy/crds/cert-manager.io_*.yaml"
_PROGRAM: Final = f"{_MODULE}/cmd/controller"
_OPTIONS: Final = ("-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", "bin/controller")


def definitions() -> list[dict[str, object]]:
    """Return the custom resource definitions: Certificate, Issuer, ClusterIssuer, CertificateRequest."""
    folder = Entry(name=f"cert-manager-definitions-{VERSION}", inputs=(_PLACE,), build=_fetch).folder()
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]


def controller() -> Entry:
    """Return the cache entry of the controller. A first build takes some minutes."""
    oldest = ".".join(map(str, _OLDEST_GO))
    module = f"module kontroller.dev/devcluster\ngo {oldest}\nrequire {_MODULE} v{CONTROLLER_VERSION}\n"

    def build(folder: Path) -> None:
        with progress.step(f"Building cert-manager {CONTROLLER_VERSION}") as step:
            (folder / "go.mod").write_text(module)
            build_programs(step, folder, _OLDEST_GO, [_PROGRAM], _OPTIONS)

    return Entry(name=f"cert-manager-{CONTROLLER_VERSION}", inputs=(module, *_OPTIONS), build=build)


def controller_binary() -> Path:
    """Return the path of the controller."""
    return controller().folder() / "bin" / "controller"


def _fetch(folder: Path) -> None:
    with progress.step(f"Fetching the definitions of cert-manager {VERSION}"):
        download = ("mod", "download", "-json", f"{_MODULE}@v{VERSION}")
        module = json.loads(run_go(folder, _OLDEST_GO, *download, what="fetching cert-manager's module"))
        for file in Path(module["Dir"]).glob(_PLACE):
            shutil.copyfile(file, folder / file.name)
