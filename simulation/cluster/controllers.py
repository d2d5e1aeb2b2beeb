"""Controller processes over simulated brokers, and requests to them.

A process is the production `Controller`. `settle` waits until nothing is left to do; time passes only there.
"""

import asyncio
from typing import Any

from kio.static.protocol import RequestPayload

from controller_core.journal.batches import Journal
from controller_core.model.ids import (
    BrokerId,
)
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from simulation.cluster.names import CONTROLLER
from simulation.cluster.registered_brokers import RegisteredBrokers
from simulation.mortality import Life
from simulation.process import LISTENERS, Process, ProcessSettings
from simulation.virtual_time import wait_until_quiet


class Controllers(RegisteredBrokers):
    """Brokers, ZooKeeper and controller processes, with the settings of processes that start later."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        super().__init__(empty_zookeeper=empty_zookeeper)
        self.processes: list[Process] = []
        self.settings = ProcessSettings()
        self.listeners = LISTENERS
        self.journal: Journal | None = None
        """The history of the processes that start later."""

    def start_controller(self, own_id: int = CONTROLLER, *, life: Life | None = None) -> Process:
        process = Process(
            BrokerId(own_id),
            self.zk,
            self.brokers,
            self.clock,
            life=life or Life(),
            settings=self.settings,
            journal=self.journal,
            listeners=self.listeners,
        )
        self.processes.append(process)
        return process

    async def serve(self, own_id: int = CONTROLLER) -> Process:
        """Start a controller, and wait until it is active and has nothing left to do."""
        process = self.start_controller(own_id)
        await self.settle()
        assert process.is_active
        return process

    @property
    def active(self) -> Process:
        return next(process for process in self.processes if process.is_active)

    async def settle(self, passing_ms: float = 3000) -> None:
        """Wait until nothing is left to do, and nothing new happens within `passing_ms`."""
        latest_ms = self.clock.monotonic_ms() + passing_ms
        await wait_until_quiet()
        while self.clock.pass_to_next(latest_ms):
            await wait_until_quiet()
        for process in self.processes:
            process.raise_failure()

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()

    async def request(self, request: RequestPayload, quota: MutationQuota = UNLIMITED) -> Any:
        """Send a client's request to the active controller. Return the answer after all its consequences."""
        answer = asyncio.create_task(self.active.answer(request, quota))
        await self.settle()
        assert answer.done(), f"{request} is not answered"
        return answer.result()

    async def ask(self, broker: BrokerId, request: RequestPayload) -> Any:
        """Send a broker's request to its known controller. Return None if there is no answer."""
        wanted = self.brokers[broker].metadata.controller_id
        process = next((p for p in reversed(self.processes) if p.id == wanted and not p.running.done()), None)
        if process is None:
            return None
        answer = asyncio.create_task(process.answer(request))
        await self.settle()
        if not answer.done():
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            return None
        return answer.result()
