"""A plugin for pytest that runs tests on Kafka's own controller only, and records its answers.

`pytest -p tests.golden.recording tests/real/conformance/test_admin_requests.py`
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest

from tests.golden.answers import Exchanges, path_of, read, write
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import KAFKA


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    items[:] = [item for item in items if item.callspec.params["started_cluster"] == KAFKA]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Iterator[None]:
    """Record the requests of the test body. The requests of fixtures depend on the tests before it."""
    cluster = next(value for value in item.funcargs.values() if isinstance(value, ConformanceCluster))
    _make_the_first_broker_the_controller(cluster)
    exchanges = Exchanges()
    ask_controller = ConformanceCluster.ask_controller

    def ask(self: ConformanceCluster, request: Any, *args: Any) -> Any:
        answer = ask_controller(self, request, *args)
        if not isinstance(request, ApiVersionsRequest):  # brokers answer it for our controller
            exchanges.add(request, answer)
        return answer

    with patch.object(ConformanceCluster, "ask_controller", ask):
        yield
    if exchanges.made:
        path = path_of(cluster.release, item.module)
        name = item.name.replace(f"[{KAFKA}]", "").replace(f"[{KAFKA}-", "[")
        write(path, read(path) | {name: exchanges.made})


def _make_the_first_broker_the_controller(cluster: ConformanceCluster) -> None:
    """Repeat the election of a controller until broker 1 wins, so that each recording stops the same brokers."""
    while cluster.order[0] != 1:
        cluster.begin_a_new_term()
        cluster.health_gate.open()
