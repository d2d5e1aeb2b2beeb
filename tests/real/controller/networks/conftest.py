"""One set of machines for all tests of a file."""

from collections.abc import Iterator

import pytest

from devcluster.clusters.run_folder import RunFolder
from devcluster.machines.namespaces import why_impossible
from tests.real.controller.networks.stage import Stage, set_up


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[Stage]:
    hindrance = why_impossible()
    if hindrance is not None:
        pytest.skip(f"NOT RUN, what bad networks do is not shown here: {hindrance}")
    with set_up(servers_folder, request.path.stem) as stage:
        yield stage
