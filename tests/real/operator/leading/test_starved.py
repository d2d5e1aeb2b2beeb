"""An operator keeps the Lease on an overloaded machine."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from controller_operator.kubernetes.api_client import ApiRequests
from controller_operator.kubernetes.api_server import load_configuration
from controller_operator.leading.elector import Elector, LeaseTimes
from controller_operator.leading.elector_thread import ElectorThread
from controller_operator.leading.kubernetes_lease import KubernetesLease
from controller_operator.leading.lease import Lease
from controller_operator.loop_thread import LoopThread
from controller_operator.settings import OperatorSettings
from devcluster.clusters.kubernetes import KubernetesCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(180), pytest.mark.nightly("keeps the whole machine busy")]

LOAD_PER_CORE = 7
TIMES = LeaseTimes(duration_s=OperatorSettings.model_fields["lease_duration_seconds"].default)


@contextmanager
def busy_machine() -> Iterator[None]:
    """Run processes that compute all the time, seven for each core."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(LOAD_PER_CORE * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def test_the_lease_is_renewed_in_time_on_a_machine_with_too_much_to_do(
    kubernetes_api: KubernetesCluster,
) -> None:
    thread = LoopThread("lease")

    async def make() -> tuple[Elector, KubernetesLease]:
        configuration = await load_configuration(kubeconfig=kubernetes_api.kubeconfig)
        lease = KubernetesLease(ApiRequests(configuration), "default", "starved")
        return Elector(lease, "starved", TIMES, now=lambda: datetime.now(UTC)), lease

    elector, lease = await thread.call(make())
    running = ElectorThread(elector, thread)
    try:
        await running.acquire()
        acquired = await _read(thread, lease)
        keeping = asyncio.create_task(running.keep())
        while (before := await _read(thread, lease)).version == acquired.version:  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.1)
        with busy_machine():
            for _ in range(3):
                await asyncio.sleep(0)
                until_s = time.monotonic() + TIMES.duration_s
                while time.monotonic() < until_s:  # the operator's own loop computes, too
                    running.require()
        after = await _read(thread, lease)
        assert after.claim.renewed_at > before.claim.renewed_at
        assert after.claim.transitions == before.claim.transitions
        assert not keeping.done()
        keeping.cancel()
        await running.release()
    finally:
        await running.close()


async def _read(thread: LoopThread, lease: KubernetesLease) -> Lease:
    found = await thread.call(lease.read(60))
    assert found is not None
    return found
