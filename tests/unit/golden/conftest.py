"""Tests of `tests/real/conformance` on the simulation, held to the answers of Kafka's own controller.

A test runs as it does on real servers. Then every answer is compared with the record in `tests/golden`. Tests that are
marked `ours_only` have no record.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.building.java import KAFKA_VERSION
from tests.golden.answers import Exchanges, Recorded, path_of, read
from tests.real.conformance.set_ups import OURS
from tests.unit.golden.differences import ours
from tests.unit.golden.simulated import SimulatedConformance, simulate_conformance

pytest.register_assert_rewrite(
    *(f"tests.real.conformance.{path.stem}" for path in Path(__file__).parent.glob("test_*.py"))
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one case of each test that is marked `ours_only`: the simulation has no set-ups."""

    def is_kept(item: pytest.Item) -> bool:
        return item.path.parent != Path(__file__).parent or _set_up_of(item) in (None, OURS)

    config.hook.pytest_deselected(items=[item for item in items if not is_kept(item)])
    items[:] = filter(is_kept, items)


@pytest.fixture
def started_cluster(request: pytest.FixtureRequest) -> str | None:
    """Return the set-up that the mark `ours_only` names. The simulation does not use it."""
    return getattr(request, "param", None)


@pytest.fixture
def cluster(started_cluster: str | None) -> Iterator[SimulatedConformance]:
    with simulate_conformance() as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Iterator[None]:
    """Compare the answers to the test body with the record. The requests of fixtures are not recorded."""
    cluster = next((value for value in item.funcargs.values() if isinstance(value, SimulatedConformance)), None)
    if cluster is None:
        return (yield)
    exchanges = cluster.simulation.exchanges = Exchanges()
    yield
    if recorded := _record_of(item):
        for made, exchange in zip(exchanges.made, recorded, strict=True):
            assert made == {**exchange, "answer": ours(exchange["answer"])}
    return None


def _record_of(item: pytest.Function) -> Recorded | None:
    """Return the record of a test; None if the test is marked `ours_only`."""
    if _set_up_of(item) is not None:
        return None
    path = path_of(KAFKA_VERSION, item.module)
    records = read(path)
    assert item.name in records, f"{path} has no record of this test: make one (tests/golden/recording.py)"
    return records[item.name]


def _set_up_of(item: pytest.Item) -> str | None:
    """Return the set-up that the mark `ours_only` names; None if the test has no such mark."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("started_cluster") if callspec else None
