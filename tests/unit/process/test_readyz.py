"""`/readyz`: one status for probes, and for people all that the process says of itself."""

import socket

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from controller_core.controller.role.readiness import Readiness
from controller_core.process.http import make_readiness_route, serve_metrics


@pytest.mark.parametrize(
    ("readiness", "status"),
    [
        (Readiness(is_ready=True, role="controller", details={"hot": False}), 200),
        (Readiness(is_ready=False, role="standby", reason="no broker answers"), 503),
    ],
)
async def test_the_status_says_whether_it_is_ready_and_the_body_says_why(readiness: Readiness, status: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stop = await serve_metrics("127.0.0.1", port, CollectorRegistry(), [make_readiness_route(lambda: readiness)])
    try:
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert (answer.status, await answer.json()) == (status, readiness.make_json())
    finally:
        await stop()
