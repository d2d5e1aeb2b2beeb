"""One FIFO stream of control requests for each live broker. A slow broker delays only its own stream.

A broker must receive control requests in the order of the decisions, so there is one queue, and one request in flight.
A request is repeated until it is answered or the broker is removed, because epochs make all of them idempotent. Copies
that a lost connection left behind must not arrive after later requests (`late_copies`). A broker that bounced gets a
new stream, because the queued requests were meant for its former life (KIP-380).

If too much waits for a broker, the queue is dropped, except for partitions to forget, which nobody would send again.
Once the broker answers it is sent everything, as if it had started. That is as correct as the queue and faster, because
requests describe the present state, never a step on the way. A broker that answers may be further behind than one that
is unreachable.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import BrokerAnswered, BrokerBehind, EpochOutdated, StreamBroken
from controller_core.controller.sending.late_copies import LateCopies, PresentEpoch
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.model.metadata import Broker
from controller_core.supervision import start_supervised
from controller_core.wire.codecs.entries import EncodedTopics
from controller_core.wire.link import BrokerLink, BrokerLinkFactory, LinkError, NotConnected
from controller_core.wire.messages import ControlRequest, ControlResponse

RETRY_BACKOFF_MS = 100
"""The backoff of Kafka's RequestSendThread."""
MOST_WAITING: Final = 1000
"""The limit of requests that wait for an unreachable broker. The next one limits the size of their topics."""
MOST_WAITING_BYTES: Final = 64 << 20
MOST_WAITING_FOR_SLOW: Final = 10_000
MOST_WAITING_BYTES_FOR_SLOW: Final = 1 << 30
"""The limits for a broker that answers. Everything that a broker must know is less."""

StreamEvent = BrokerAnswered | BrokerBehind | EpochOutdated | StreamBroken

log = structlog.get_logger()


class BrokerChannels:
    """The streams to all live brokers.

    `enqueue` is called on the event loop with every answer. It is also called if a stream cannot continue under the
    present controller epoch, until `raise_epoch`.
    """

    def __init__(
        self,
        links: BrokerLinkFactory,
        clock: Clock,
        epoch: ControllerEpoch,
        enqueue: Callable[[StreamEvent], None],
    ) -> None:
        self._links = links
        self._clock = clock
        self._epoch = PresentEpoch(epoch, enqueue)
        self._enqueue = enqueue
        self._channels: dict[BrokerId, _Channel] = {}
        self._late_copies: dict[BrokerId, LateCopies] = {}
        """For each broker's present life, also over another address."""

    def add(self, broker: Broker) -> None:
        """Open the stream to a broker. Nothing is sent before the first request."""
        known = self._late_copies.get(broker.id)
        if known is None or known.broker_epoch != broker.epoch:
            known = self._late_copies[broker.id] = LateCopies(broker.epoch)
        self._channels[broker.id] = _Channel(
            broker, self._links(broker), self._clock, self._epoch, known, self._enqueue
        )

    def raise_epoch(self, epoch: ControllerEpoch) -> None:
        """Set a later controller epoch, and continue what waited for it."""
        self._epoch.raise_to(epoch)

    async def remove(self, broker: BrokerId) -> None:
        """End the stream to a broker that is gone, and drop its waiting requests."""
        channel = self._channels.pop(broker, None)
        if channel is not None:
            await channel.close()

    def send(self, broker: BrokerId, request: ControlRequest) -> None:
        """Queue a request. It is dropped if the broker has no stream because it died."""
        channel = self._channels.get(broker)
        if channel is not None:
            channel.send(request)

    def catch_up(self, broker: BrokerId) -> bool:
        """Send a broker all requests again from now on. Return True if it was behind and must be sent everything."""
        channel = self._channels.get(broker)
        was_behind = channel is not None and channel.is_behind
        if channel is not None:
            channel.is_behind = False
        return was_behind

    def count_unanswered(self) -> dict[BrokerId, int]:
        """Return the number of each broker's unanswered requests, including the queued ones."""
        return {broker: channel.unanswered for broker, channel in self._channels.items()}

    async def close(self) -> None:
        """End all streams."""
        channels, self._channels = list(self._channels.values()), {}
        await asyncio.gather(*(channel.close() for channel in channels))


class _Channel:
    def __init__(
        self,
        broker: Broker,
        link: BrokerLink,
        clock: Clock,
        epoch: PresentEpoch,
        late_copies: LateCopies,
        enqueue: Callable[[StreamEvent], None],
    ) -> None:
        self.is_behind = False
        """True while requests are dropped, until the broker is reachable and is sent everything."""
        self._broker = broker
        self._link = link
        self._clock = clock
        self._epoch = epoch
        self._late_copies = late_copies
        self._enqueue = enqueue
        self._queue: deque[ControlRequest] = deque()
        self._droppable = self._droppable_bytes = 0
        """The requests of the queue that are sent again with everything, and the size of their topics."""
        self._is_failing = False
        self._arrived = asyncio.Event()
        self._task = start_supervised(self._run, name=f"channel-{broker.id}", sleep_ms=clock.sleep_ms)

    @property
    def unanswered(self) -> int:
        return len(self._queue)

    def send(self, request: ControlRequest) -> None:
        if self.is_behind and not _makes_forget(request):
            return
        self._queue.append(request)
        self._count(request, 1)
        slow = MOST_WAITING_FOR_SLOW, MOST_WAITING_BYTES_FOR_SLOW
        most, most_bytes = (MOST_WAITING, MOST_WAITING_BYTES) if self._is_failing else slow
        is_too_much = self._droppable > most or self._droppable_bytes > most_bytes
        if is_too_much and not self.is_behind:
            self._fall_behind()
        self._arrived.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._link.close()

    def _fall_behind(self) -> None:
        first, *others = self._queue
        # Keep the first request: its answer shows that the broker is reachable again.
        self._queue = deque([first, *filter(_makes_forget, others)])
        self._droppable = self._droppable_bytes = 0
        self._count(first, 1)
        self.is_behind = True
        log.warning("broker is sent everything when it can be reached again", broker=self._broker.id)

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            try:
                await self._deliver(self._queue[0])
            # Requests are checked before they are queued, so this one is wrong in an unexpected way. Dropping it would
            # be unsafe: the event ends the term.
            except Exception as error:
                log.exception("control request cannot be sent", broker=self._broker.id, request=repr(self._queue[0]))
                self._enqueue(StreamBroken(self._broker.id, self._queue[0].controller_epoch, error))
                return
            self._count(self._queue.popleft(), -1)

    def _count(self, request: ControlRequest, sign: int) -> None:
        """Count a request that was queued (1) or has left the queue (-1)."""
        if not _makes_forget(request):
            self._droppable += sign
            self._droppable_bytes += sign * _size_bytes(request)

    async def _deliver(self, request: ControlRequest) -> None:
        request = await self._fence_late_copies(request)
        while True:
            try:
                response = await self._send(request)
            except LinkError as error:
                if not self._is_failing:
                    self._is_failing = True
                    log.warning("control request not delivered, trying again", broker=self._broker.id, error=str(error))
                await self._clock.sleep_ms(RETRY_BACKOFF_MS)
            else:
                self._is_failing = False
                is_last = len(self._queue) == 1 and not self.is_behind
                self._enqueue(BrokerAnswered(self._broker.id, self._broker.epoch, request, response, is_last))
                if self.is_behind:
                    self._enqueue(BrokerBehind(self._broker.id, self._broker.epoch))
                return

    async def _fence_late_copies(self, request: ControlRequest) -> ControlRequest:
        """Return the request under an epoch that makes the broker refuse the copies that must not come after it."""
        epoch = self._late_copies.epoch_for(request)
        if epoch == request.controller_epoch:
            return request
        await self._epoch.wait_for(epoch)
        return replace(request, controller_epoch=epoch)

    async def _send(self, request: ControlRequest) -> ControlResponse:
        self._late_copies.on_sent(request)
        try:
            return await self._link.send(request)
        except NotConnected:  # nothing was written, so no copy can arrive late
            raise
        except BaseException:  # also if the stream ends and continues at another address
            self._late_copies.on_unanswered(request)
            raise


def _size_bytes(request: ControlRequest) -> int:
    topics = request.topic_states
    return len(topics.content) if isinstance(topics, EncodedTopics) else 0


def _makes_forget(request: ControlRequest) -> bool:
    topics = request.topic_states
    return isinstance(topics, EncodedTopics) and topics.makes_forget
