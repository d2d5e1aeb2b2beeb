"""The real brokers behind one client connection: whom its requests are passed on to, and when another one is asked.

Brokers list the controller among the live brokers, so clients take it for one: they ask it for coordinators, records,
configurations. A client connection is relayed to one broker at a time, over a connection that is opened with the first
such request. It changes to another broker only between requests: when that broker ended the connection, left the
cluster, or shuts down. What was sent to a broker that is lost may have been done, so it is not sent again; the client
is disconnected, as by the broker itself, and knows what it may repeat. Questions that change nothing (`ask`) are
put to the next broker instead. A broker that hangs is asked last for a while, by all connections: until its session ends
it is among the live ones, and each new connection would wait for it anew. So is one that the controller does not reach,
from which it asks all: brokers behind a cut network would hold up the others' first question one after the other. What is
known of that is looked at before each attempt.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeAlias, TypeVar

from controller_core.wire.codecs.frames import RequestHead
from controller_core.wire.listener.relay import Address, Answer, Content, Relay, UpstreamError, open_relay

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayTarget:
    """A live broker."""

    address: Address
    is_shutting_down: bool = False
    """It is asked only where there is no other."""
    is_out_of_reach: bool = False
    """It did not answer the controller lately, and is asked last."""


RelayTargets: TypeAlias = Callable[[], Sequence[RelayTarget]]
"""The live brokers, those first that should be asked first. Asked before every request that is passed on."""


SILENT_FOR_S: Final = 30.0
"""As long as a broker's session usually lasts, and a little more."""


class SilentBrokers:
    """The brokers that did not answer lately, of all connections together."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until_s: dict[Address, float] = {}

    def note(self, broker: Address) -> None:
        """It did not answer in time, or took no connection."""
        now_s = self._clock()
        self._until_s = {each: until_s for each, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[broker] = now_s + SILENT_FOR_S

    def forget(self, broker: Address) -> None:
        """It answers."""
        self._until_s.pop(broker, None)

    def __contains__(self, broker: Address) -> bool:
        return self._until_s.get(broker, 0.0) > self._clock()


async def begun(answer: Answer) -> Answer:
    """Takes an answer that has only begun: it is passed on as it comes."""
    return answer


class Upstream:
    """The upstream end of one client connection."""

    def __init__(
        self,
        targets: RelayTargets,
        *,
        connect_timeout_ms: int,
        answer_timeout_ms: int,
        max_frame_bytes: int,
        silent: SilentBrokers,
    ) -> None:
        self._targets = targets
        self._silent = silent
        self._connect_timeout_ms = connect_timeout_ms
        self._answer_timeout_ms = answer_timeout_ms
        self._max_frame_bytes = max_frame_bytes
        self._relay: Relay | None = None

    async def exchange(self, head: RequestHead, content: Content) -> Answer | None:
        """Passes a request on and returns its response, None where it has none; waits as long as it takes.

        Raises `UpstreamError`, and `Undecodable` for a Produce request that is cut."""
        return await (await self._connected()).exchange(head, content)

    async def ask(self, head: RequestHead, content: bytes, take: Callable[[Answer], Awaitable[T]]) -> T:
        """What is taken of the response to a request that changes nothing, of the first broker that answers in time.

        Raises `UpstreamError` where none does."""
        silent: set[Address] = set()
        while True:
            relay = await self._connected(besides=silent)
            try:
                async with asyncio.timeout(self._answer_timeout_ms / 1000):
                    answer = await relay.exchange(head, content)
                    assert answer is not None, "only a Produce request has no answer"
                    self._silent.forget(relay.address)
                    return await take(answer)
            except (UpstreamError, TimeoutError):
                self._silent.note(relay.address)
                silent.add(relay.address)
                self.close()

    def check(self) -> None:
        """Raises `UpstreamError` where the broker that is being asked is no longer live: its answer may never come."""
        if self._relay is not None and all(target.address != self._relay.address for target in self._targets()):
            raise UpstreamError("the broker left the cluster before it answered")

    def close(self) -> None:
        """Ends the connection to the present broker. Idempotent."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()

    async def _connected(self, besides: Collection[Address] = ()) -> Relay:
        if self._relay is not None and self._may_keep(self._relay, self._in_order()):
            return self._relay
        self.close()
        failure: UpstreamError | None = None
        tried = set(besides)
        while target := next((one for one in self._in_order() if one.address not in tried), None):
            tried.add(target.address)
            try:
                self._relay = await open_relay(
                    target.address,
                    connect_timeout_ms=self._connect_timeout_ms,
                    max_frame_bytes=self._max_frame_bytes,
                )
            except UpstreamError as error:
                self._silent.note(target.address)
                failure = error
            else:
                return self._relay
        raise failure or UpstreamError("no live broker answers" if besides else "no live broker is known")

    def _in_order(self) -> list[RelayTarget]:
        """Those first that should be asked first, as far as is known now."""
        return sorted(
            self._targets(),
            key=lambda target: (target.is_out_of_reach or target.address in self._silent, target.is_shutting_down),
        )

    def _may_keep(self, relay: Relay, targets: Sequence[RelayTarget]) -> bool:
        """`targets` has those last that are silent, or shutting down."""
        present = next((target for target in targets if target.address == relay.address), None)
        return not relay.has_ended and present is not None and present.is_shutting_down <= targets[0].is_shutting_down
