"""One FIFO stream of control requests per live broker.

A broker must see LeaderAndIsr, UpdateMetadata and StopReplica requests in the order in which they were decided, so there
is one queue and one request in flight for each. A request is sent again until it is answered or the broker is removed:
all of them are idempotent by their epochs. A copy of one that was written to a lost connection must not come after what is
sent later (`late_copies`). A broker that bounced gets a new stream, because what was queued was
meant for its former life (KIP-380). A slow broker delays only its own stream.

A broker that is registered and cannot be reached must not take all memory either. When too much waits for one whose first
request fails again and again, the others are dropped, but for those that make it forget partitions, which nobody would send
again. The first is tried on; with its answer the broker is sent everything anew, as if it had started: whatever it missed
follows from the state of that moment. That is sooner done than all that was decided meanwhile, and as right, because
every request is about what holds now, and never about a step on the way.

No request is ever dropped because it cannot be sent. What it says was looked at where it came from; where something that
nobody expected is wrong with it all the same, the stream stops, and the term ends with that error.
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
from controller_core.supervision import supervised
from controller_core.wire.codecs.entries import EncodedTopics
from controller_core.wire.link import BrokerLink, BrokerLinkFactory, LinkError, NotConnected
from controller_core.wire.messages import ControlRequest, ControlResponse

RETRY_BACKOFF_MS = 100
"""As Kafka's RequestSendThread."""
MOST_WAITING: Final = 1000
"""How many requests wait for a broker that cannot be reached, and how large their topics may be."""
MOST_WAITING_BYTES: Final = 64 << 20

StreamEvent = BrokerAnswered | BrokerBehind | EpochOutdated | StreamBroken

log = structlog.get_logger()


class BrokerChannels:
    """The streams to all live brokers. `enqueue` is called with every answer, on the event loop, and where a stream cannot
    go on under the present controller epoch: until `raise_epoch`."""

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
        """Of each broker's present life, also over another address."""

    def add(self, broker: Broker) -> None:
        """Opens the stream to a broker; nothing is sent before the first request."""
        known = self._late_copies.get(broker.id)
        if known is None or known.broker_epoch != broker.epoch:
            known = self._late_copies[broker.id] = LateCopies(broker.epoch)
        self._channels[broker.id] = _Channel(
            broker, self._links(broker), self._clock, self._epoch, known, self._enqueue
        )

    def raise_epoch(self, epoch: ControllerEpoch) -> None:
        """The controller epoch is a later one: what waited for that goes on."""
        self._epoch.raise_to(epoch)

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

    def catch_up(self, broker: BrokerId) -> bool:
        """From now on a broker gets all requests again; whether it was behind, and is to be sent everything."""
        channel = self._channels.get(broker)
        was_behind = channel is not None and channel.is_behind
        if channel is not None:
            channel.is_behind = False
        return was_behind

    def in_flight(self) -> dict[BrokerId, int]:
        """The unanswered requests of each broker, the queued ones included."""
        return {broker: channel.unanswered for broker, channel in self._channels.items()}

    async def close(self) -> None:
        """Ends all streams."""
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
        """Whether requests are dropped until the broker can be reached, and is sent everything."""
        self._broker = broker
        self._link = link
        self._clock = clock
        self._epoch = epoch
        self._late_copies = late_copies
        self._enqueue = enqueue
        self._queue: deque[ControlRequest] = deque()
        self._waiting_bytes = 0
        self._is_failing = False
        self._arrived = asyncio.Event()
        self._task = supervised(self._run, name=f"channel-{broker.id}", sleep_ms=clock.sleep_ms)

    @property
    def unanswered(self) -> int:
        return len(self._queue)

    def send(self, request: ControlRequest) -> None:
        if self.is_behind and not _makes_forget(request):
            return
        self._queue.append(request)
        self._waiting_bytes += _size_bytes(request)
        is_too_much = len(self._queue) > MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES
        if is_too_much and self._is_failing and not self.is_behind:
            self._fall_behind()
        self._arrived.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._link.close()

    def _fall_behind(self) -> None:
        first, *others = self._queue
        self._queue = deque([first, *filter(_makes_forget, others)])
        self._waiting_bytes = sum(map(_size_bytes, self._queue))
        self.is_behind = True
        log.warning("broker is sent everything anew when it can be reached again", broker=self._broker.id)

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            try:
                await self._deliver(self._queue[0])
            except Exception as error:
                log.exception("control request cannot be sent", broker=self._broker.id, request=repr(self._queue[0]))
                self._enqueue(StreamBroken(self._broker.id, self._queue[0].controller_epoch, error))
                return
            self._waiting_bytes -= _size_bytes(self._queue.popleft())

    async def _deliver(self, request: ControlRequest) -> None:
        request = await self._in_order(request)
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
                self._enqueue(
                    BrokerAnswered(self._broker.id, self._broker.epoch, request, response, len(self._queue) == 1)
                )
                if self.is_behind:
                    self._enqueue(BrokerBehind(self._broker.id, self._broker.epoch))
                return

    async def _in_order(self, request: ControlRequest) -> ControlRequest:
        """The request under an epoch by which the broker will refuse what must not come after it."""
        epoch = self._late_copies.epoch_for(request)
        if epoch == request.controller_epoch:
            return request
        await self._epoch.at_least(epoch)
        return replace(request, controller_epoch=epoch)

    async def _send(self, request: ControlRequest) -> ControlResponse:
        self._late_copies.on_sent(request)
        try:
            return await self._link.send(request)
        except NotConnected:
            raise
        except BaseException:  # also where the stream ends, and goes on over another address
            self._late_copies.on_unanswered(request)
            raise


def _size_bytes(request: ControlRequest) -> int:
    topics = request.topic_states
    return len(topics.content) if isinstance(topics, EncodedTopics) else 0


def _makes_forget(request: ControlRequest) -> bool:
    topics = request.topic_states
    return isinstance(topics, EncodedTopics) and topics.makes_forget
