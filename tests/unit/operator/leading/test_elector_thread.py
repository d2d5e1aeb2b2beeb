"""Renewals go on even if the operator's event loop is busy."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from controller_operator.leading import elector_thread
from controller_operator.leading.elector import Elector, LeaseTimes
from controller_operator.leading.elector_thread import ElectorThread
from controller_operator.leading.leadership import NotLeading
from controller_operator.leading.lease import NOBODY, Lease
from controller_operator.loop_thread import LoopThread
from tests.unit.operator.leading.simulated_lease import SimulatedLease

QUICK = LeaseTimes(duration_s=1)


@asynccontextmanager
async def run_elector(lease: SimulatedLease) -> AsyncIterator[ElectorThread]:
    elector = Elector(lease, "first", QUICK, now=lambda: datetime.now(UTC))
    running = ElectorThread(elector, LoopThread("lease"))
    try:
        yield running
    finally:
        await running.close()


async def wait_renewed(lease: SimulatedLease) -> Lease | None:
    """Waits for a renewal; returns the Lease afterwards."""
    before = lease.lease
    async with asyncio.timeout(60):
        while lease.lease == before:  # noqa: ASYNC110 - another thread renews
            await asyncio.sleep(0.01)
    return lease.lease


def stay_busy(duration_s: float) -> None:
    """Run Python all the time, as a plan over very many partitions does."""
    until_s = time.monotonic() + duration_s
    while time.monotonic() < until_s:
        pass


async def test_an_operator_that_is_busy_for_longer_than_the_deadline_still_leads() -> None:
    lease = SimulatedLease()
    async with run_elector(lease) as elector:
        await elector.acquire()
        keeping = asyncio.create_task(elector.keep())
        before = await wait_renewed(lease)
        stay_busy(2 * QUICK.renew_deadline_s)
        elector.require()
        assert lease.lease != before
        await elector.confirm()
        keeping.cancel()
        await elector.release()
        assert lease.lease is not None
        assert lease.lease.claim.holder == NOBODY


async def test_an_operator_that_stands_still_for_good_does_not_keep_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elector_thread, "_SILENT_S", 0.2)
    monkeypatch.setattr(elector_thread, "_SIGN_OF_LIFE_S", 0.05)
    lease = SimulatedLease()
    async with run_elector(lease) as elector:
        await elector.acquire()
        keeping = asyncio.create_task(elector.keep())
        await wait_renewed(lease)
        stay_busy(0.5 + QUICK.renew_deadline_s)
        with pytest.raises(NotLeading):
            elector.require()
        with pytest.raises(NotLeading, match="stood still"):
            await keeping


async def test_a_lease_that_somebody_deletes_is_lost() -> None:
    lease = SimulatedLease()
    async with run_elector(lease) as elector:
        await elector.acquire()
        assert elector.lease_uid == "uid-1"
        lease.lease = None
        with pytest.raises(NotLeading):
            await elector.keep()
        with pytest.raises(NotLeading):
            elector.require()
        assert elector.trouble is None
