"""The parts of the cache for real servers, so that a run waits only for the parts that it needs.

`python -m devcluster.filling.parts etcd` fills one part: `fill` runs several of these processes in parallel, and can
end them.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from devcluster import health
from devcluster.building import java, kraft
from devcluster.building.cache import Entry
from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.filling import programs
from devcluster.filling.programs import Program
from devcluster.running.processes import exit_on_sigterm


class Part(StrEnum):
    """A part that is fetched or built on its own."""

    KAFKA = "kafka"
    """Includes ZooKeeper."""
    KRAFT = "kraft"
    """Kafka without ZooKeeper."""
    ETCD = "etcd"
    KUBERNETES = "kubernetes"
    """The API server."""
    HELM = "helm"
    """Includes kubectl."""
    HEALTH = "health"
    """The health checks of Argo CD and Flux."""


API_SERVER: Final = (Part.KUBERNETES, Part.ETCD, Part.HELM)
"""The parts of `kubernetes_api`; the slowest comes first."""

_ENTRIES: Final[Mapping[Part, Callable[[], Entry]]] = {
    Part.KAFKA: java.kafka,
    Part.KRAFT: kraft.kafka,
    Part.HEALTH: health.health,
}
_PROGRAMS: Final[Mapping[Part, tuple[Program, ...]]] = {
    Part.ETCD: (programs.ETCD,),
    Part.KUBERNETES: (programs.KUBE_APISERVER,),
    Part.HELM: (programs.KUBECTL, programs.HELM),
}


def find_missing(parts: Iterable[Part]) -> list[Part]:
    """Return the parts that are missing, each once. With `$KUBECONFIG`, no API server and no etcd is needed."""
    given = (Part.KUBERNETES, Part.ETCD) if os.environ.get("KUBECONFIG") else ()
    return [part for part in dict.fromkeys(parts) if part not in given and not _is_there(part)]


def fill(part: Part) -> None:
    """Fetch or build a part if it is missing. Raises MissingToolError and BuildError."""
    if part in _ENTRIES:
        _ENTRIES[part]().folder()
    for program in _PROGRAMS.get(part, ()):
        program.path()


def _is_there(part: Part) -> bool:
    if part in _ENTRIES:
        return _ENTRIES[part]().is_there
    return all(program.is_there for program in _PROGRAMS[part])


if __name__ == "__main__":
    try:
        with exit_on_sigterm():
            fill(Part(sys.argv[1]))
    except (BuildError, MissingToolError) as error:
        sys.exit(str(error))
