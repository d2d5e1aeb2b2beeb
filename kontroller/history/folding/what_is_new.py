"""Of which clusters something is new, so that their layers are to be made again.

A cluster is folded by itself, so it is those of which there are new parts of the raw tables, and, with other definitions,
all. One thing is between clusters: records from before a cluster had an id belong to the one cluster of their journal.
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
"""The cluster of what names none."""
_CODE: Final = ("transforms", "sources", "folding", "schemas.py", "store.py")
Pair = tuple[str, str]
"""A cluster, and a journal that names it."""


def folded_again(changed: AbstractSet[str], new: AbstractSet[Pair], pairs: AbstractSet[Pair]) -> frozenset[str]:
    """Whose records are others than before, or belong to other clusters, where what is new is of the clusters `changed` and
    has the pairs `new`; `pairs` are of all that there is."""
    touched = with_nameless(pairs) & {journal for _, journal in new}
    return frozenset(changed | {cluster for cluster, journal in pairs if journal in touched})


def read_for(clusters: AbstractSet[str], pairs: AbstractSet[Pair]) -> frozenset[str]:
    """Of which clusters records are read to fold these: of what names none as well, if any of their journals has such."""
    nameless = with_nameless(pairs)
    is_among = any(cluster in clusters and journal in nameless for cluster, journal in pairs)
    return frozenset(clusters | ({NAMELESS} if is_among else set()))


@functools.cache
def definitions() -> str:
    """A text for the code that makes the layers: another one for any other code."""
    digest = hashlib.sha256(pyspark.__version__.encode())
    for file in code():
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def code() -> list[Path]:
    """The modules that say what is in the layers, and in which of their files."""
    places = [Path(folder) / name for folder in kontroller.history.__path__ for name in _CODE]
    places += [*map(Path, journal.__path__), Path(wording.__file__)]
    return sorted(file for place in places for file in ([place] if place.is_file() else place.rglob("*.py")))


def with_nameless(pairs: AbstractSet[Pair]) -> set[str]:
    """The journals in which some records name no cluster."""
    return {journal for cluster, journal in pairs if cluster == NAMELESS}
