"""The clusters on which a test runs, as marks, and the spec of a topic."""

from typing import Any

import pytest

from devcluster.building.java import OLDER_VERSIONS, OTHER_KRAFT_VERSIONS
from devcluster.filling.parts import Part

MARKS = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]
"""The marks of every file here."""
CLUSTERS = ("Kafka", "Kontroller", "KRaft")
OTHER_RELEASES = (
    *(f"Kontroller-{release}" for release in OLDER_VERSIONS),
    *(f"KRaft-{release}" for release in OTHER_KRAFT_VERSIONS),
)
OTHER = pytest.mark.nightly("the kinds are the same on each release of Kafka")
with_zookeeper = pytest.mark.parametrize("operated_cluster", CLUSTERS[:2], indirect=True)
"""Marks tests that write or check znodes."""
under_kontroller = pytest.mark.parametrize("operated_cluster", CLUSTERS[1:2], indirect=True)
"""Marks tests with ZooKeeper in which only the operator's part matters."""
on_every_release = pytest.mark.parametrize(
    "operated_cluster",
    [*CLUSTERS, *(pytest.param(release, marks=OTHER) for release in OTHER_RELEASES)],
    indirect=True,
)
"""Marks one test of each kind, from creation to deletion."""


def topic_spec(**changes: Any) -> dict[str, Any]:
    return {"partitions": 3, "replicationFactor": 2, **changes}
