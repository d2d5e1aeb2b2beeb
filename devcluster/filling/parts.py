"""What the cache may hold for real servers, part by part, so that a run waits for no more than it needs.

`python -m devcluster.filling.parts etcd` fills one part: that is how `fill` runs several side by side, and how it can
end them.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from devcluster import health
from devcluster.building import binaries, java, kraft
from devcluster.building.cache import Entry
from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.running.processes import ending_on_sigterm


class Part(StrEnum):
    """Something that is fetched or built on its own."""

    KAFKA = "kafka"
    """ZooKeeper too."""
    KRAFT = "kraft"
    """Kafka that knows no ZooKeeper."""
    ETCD = "etcd"
    KUBERNETES = "kubernetes"
    """The API server and kubectl."""
    HELM = "helm"
    HEALTH = "health"
    """What Argo CD and Flux think of an object."""


API_SERVER: Final = (Part.KUBERNETES, Part.ETCD)
"""What `kubernetes_api` needs."""

_ENTRIES: Final[Mapping[Part, Callable[[], Entry]]] = {
    Part.KAFKA: java.kafka,
    Part.KRAFT: kraft.kafka,
    Part.ETCD: binaries.etcd,
    Part.KUBERNETES: binaries.kubernetes,
    Part.HELM: binaries.helm,
    Part.HEALTH: health.health,
}


def missing(parts: Iterable[Part]) -> list[Part]:
    """Those that are not in the cache yet."""
    return [part for part in parts if not _ENTRIES[part]().is_there]


def fill(part: Part) -> None:
    """Fetches or builds a part where it is missing. Raises MissingToolError and BuildError."""
    _ENTRIES[part]().folder()


if __name__ == "__main__":
    try:
        with ending_on_sigterm():
            fill(Part(sys.argv[1]))
    except (BuildError, MissingToolError) as error:
        sys.exit(str(error))
