"""Controller processes over simulated brokers, and what they are asked.

A process is the production `Controller`. `settle` waits until nobody has anything left to do; time passes only there.
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
from simulation.virtual_time import until_quiet


class Controllers(RegisteredBrokers):
    """Brokers, ZooKeeper and controller processes, with what is set for those that are started from now on."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        super().__init__(empty_zookeeper=empty_zookeeper)
        self.processes: list[Process] = []
        self.settings = ProcessSettings()
        self.listeners = LISTENERS
        self.journal: Journal | None = None
        """What the processes that are started from now on write their history to."""

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
        """Starts a controller and waits until it is in charge and has nothing left to do."""
        process = self.start_controller(own_id)
        await self.settle()
        assert process.is_active
        return process

    @property
    def active(self) -> Process:
        return next(process for process in self.processes if process.is_active)

    async def settle(self, passing_ms: float = 3000) -> None:
        """Waits until nobody has anything left to do, and longer: until nobody had for some time that passes."""
        latest_ms = self.clock.monotonic_ms() + passing_ms
        await until_quiet()
        while self.clock.pass_to_next(latest_ms):
            await until_quiet()
        for process in self.processes:
            process.raise_failure()

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()

    async def request(self, request: RequestPayload, quota: MutationQuota = UNLIMITED) -> Any:
        """A client's request to the controller in charge, and its answer once all that follows from it is done."""
        answer = asyncio.create_task(self.active.answer(request, quota))
        await self.settle()
        assert answer.done(), f"{request} is not answered"
        return answer.result()

    async def ask(self, broker: BrokerId, request: RequestPayload) -> Any:
        """Sends a request to whom the broker takes for the controller; None where nobody answers."""
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
