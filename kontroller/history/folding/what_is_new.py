"""The clusters whose layers must be made again because they have new records.

Clusters are folded independently, so these are the clusters with new raw parts; new definitions fold all clusters.
There is one link between clusters: records from before a cluster had an id belong to the only cluster of their journal.
"""

import functools
import hashlib
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import pyspark

import kontroller.history
from controller_core import journal
from controller_core.model import wording

NAMELESS: Final = ""
"""The cluster of records that name none."""
_CODE: Final = ("transforms", "sources", "folding", "engine", "schemas.py", "store.py")
Pair = tuple[str, str]
"""A cluster, and a journal that names it."""


def find_clusters_to_fold(
    changed: AbstractSet[str], new: AbstractSet[Pair], pairs: AbstractSet[Pair]
) -> frozenset[str]:
    """Return the clusters whose records change, or now belong to another cluster.

    `changed`: the clusters with new records. `new`: the pairs of the new records. `pairs`: all pairs."""
    touched = find_nameless_journals(pairs) & {journal for _, journal in new}
    return frozenset(changed | {cluster for cluster, journal in pairs if journal in touched})


def read_for(clusters: AbstractSet[str], pairs: AbstractSet[Pair]) -> frozenset[str]:
    """Return the clusters whose records are read to fold these.

    That includes records that name no cluster, if one of the journals has such."""
    nameless = find_nameless_journals(pairs)
    is_among = any(cluster in clusters and journal in nameless for cluster, journal in pairs)
    return frozenset(clusters | ({NAMELESS} if is_among else set()))


@functools.cache
def definitions() -> str:
    """Return a digest of the code that makes the layers. Any other code has another digest."""
    digest = hashlib.sha256(pyspark.__version__.encode())
    for file in code():
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def code() -> list[Path]:
    """Return the modules that determine the contents of the layers, and their division into files."""
    places = [Path(folder) / name for folder in kontroller.history.__path__ for name in _CODE]
    places += [*map(Path, journal.__path__), Path(wording.__file__)]
    found = (file for place in places for file in ([place] if place.is_file() else place.rglob("*")))
    return sorted(file for file in found if file.suffix in (".py", ".sql"))


def find_nameless_journals(pairs: AbstractSet[Pair]) -> set[str]:
    """Return the journals in which some records name no cluster."""
    return {journal for cluster, journal in pairs if cluster == NAMELESS}
