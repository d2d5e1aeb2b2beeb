"""One FIFO stream of control requests per live broker.

A broker must see LeaderAndIsr, UpdateMetadata and StopReplica requests in the order in which they were decided, so there
is one queue and one request in flight for each. A request is sent again until it is answered or the broker is removed:
all of them are idempotent by their epochs. A broker that bounced gets a new stream, because what was queued was meant
for its former life (KIP-380). A slow broker delays only its own stream.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog

from controller_core.controller.clock import Clock
from controller_core.controller.events import BrokerAnswered
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.wire.link import BrokerLink, BrokerLinkFactory, LinkError
from controller_core.wire.messages import ControlRequest

RETRY_BACKOFF_MS = 100
"""As Kafka's RequestSendThread."""

log = structlog.get_logger()


class BrokerChannels:
    """The streams to all live brokers. `on_answer` is called with every answer, on the event loop."""

    def __init__(self, links: BrokerLinkFactory, clock: Clock, on_answer: Callable[[BrokerAnswered], None]) -> None:
        self._links = links
        self._clock = clock
        self._on_answer = on_answer
        self._channels: dict[BrokerId, _Channel] = {}

    def add(self, broker: Broker) -> None:
        """Opens the stream to a broker; nothing is sent before the first request."""
        self._channels[broker.id] = _Channel(broker, self._links(broker), self._clock, self._on_answer)

    async def remove(self, broker: BrokerId) -> None:
        """Ends the stream to a broker that is gone, with everything that still waits in it."""
        channel = self._channels.pop(broker, None)
        if channel is not None:
            await channel.close()

    def send(self, broker: BrokerId, request: ControlRequest) -> None:
        """Queues a request; ignored for a broker without a stream, which has died in the meantime."""
        channel = self._channels.get(broker)
        if channel is not None:
            channel.send(request)

    def in_flight(self) -> dict[BrokerId, int]:
        """The unanswered requests of each broker, the queued ones included."""
        return {broker: channel.unanswered for broker, channel in self._channels.items()}

    async def close(self) -> None:
        """Ends all streams."""
        channels, self._channels = list(self._channels.values()), {}
        await asyncio.gather(*(channel.close() for channel in channels))


class _Channel:
    def __init__(
        self, broker: Broker, link: BrokerLink, clock: Clock, on_answer: Callable[[BrokerAnswered], None]
    ) -> None:
        self._broker = broker
        self._link = link
        self._clock = clock
        self._on_answer = on_answer
        self._queue: deque[ControlRequest] = deque()
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"channel-{broker.id}")

    @property
    def unanswered(self) -> int:
        return len(self._queue)

    def send(self, request: ControlRequest) -> None:
        self._queue.append(request)
        self._arrived.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._link.close()

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            try:
                await self._deliver(self._queue[0])
            except Exception:
                log.exception("control request dropped, it cannot be sent", broker=self._broker.id)
            self._queue.popleft()

    async def _deliver(self, request: ControlRequest) -> None:
        failures = 0
        while True:
            try:
                response = await self._link.send(request)
            except LinkError as error:
                failures += 1
                if failures == 1:
                    log.warning("control request not delivered, trying again", broker=self._broker.id, error=str(error))
                await self._clock.sleep_ms(RETRY_BACKOFF_MS)
            else:
                answered = BrokerAnswered(self._broker.id, self._broker.epoch, request, response)
                self._on_answer(answered)
                return
