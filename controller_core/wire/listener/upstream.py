"""The brokers behind one client connection: the choice of the broker that its requests are relayed to.

Brokers list the controller as live, so clients ask it for coordinators, records and configurations. A connection is
relayed to one broker at a time, over a connection that is opened for the first such request. It changes the broker only
between requests: when the broker closed the connection, left the cluster, or shuts down. A request to a lost broker may
have been executed, so it is not repeated. The client is disconnected, as by the broker itself, and knows what it may
repeat. Questions that change nothing (`ask`) go to the next broker instead. A broker that hangs, or that the controller
cannot reach, is asked last for a while, by all connections. Otherwise each new connection would wait for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeAlias, TypeVar

from controller_core.wire.codecs.frames import RequestHead
from controller_core.wire.limits.ledger import RELAY_BYTES, Place
from controller_core.wire.listener.relay import Address, Answer, Content, Relay, UpstreamError, open_relay

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayTarget:
    """A live broker, with what is known about its readiness."""

    address: Address
    is_shutting_down: bool = False
    """True if it shuts down. It is used only if there is no other broker."""
    is_out_of_reach: bool = False
    """True if it recently did not answer the controller. It is asked last."""


RelayTargets: TypeAlias = Callable[[], Sequence[RelayTarget]]
"""Returns the live brokers, in the order of preference. Called before every relayed request. Raises `UpstreamError` if
none of them may be asked."""


SILENT_FOR_S: Final = 30.0
"""Seconds: a little longer than a broker's session usually lasts."""


class SilentBrokers:
    """The brokers that recently did not answer, shared by all connections."""

    def __init__(self) -> None:
        self._until_s: dict[Address, float] = {}

    def note(self, broker: Address) -> None:
        """Note that the broker did not answer in time, or accepted no connection."""
        now_s = monotonic()
        self._until_s = {each: until_s for each, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[broker] = now_s + SILENT_FOR_S

    def forget(self, broker: Address) -> None:
        """Note that the broker answers."""
        self._until_s.pop(broker, None)

    def __contains__(self, broker: Address) -> bool:
        return self._until_s.get(broker, 0.0) > monotonic()


async def take_unread(answer: Answer) -> Answer:
    """Return the unfinished answer itself, to relay it as it arrives."""
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
        place: Place,
    ) -> None:
        """`place` is that of the client's connection, which pays for the memory."""
        self._place = place
        self._targets = targets
        self._silent = silent
        self._connect_timeout_ms = connect_timeout_ms
        self._answer_timeout_ms = answer_timeout_ms
        self._max_frame_bytes = max_frame_bytes
        self._relay: Relay | None = None

    async def exchange(self, head: RequestHead, content: Content) -> Answer | None:
        """Relay a request and return its response, or None if it has none. Waits without a limit.

        Raises `UpstreamError`, and `Undecodable` for a truncated Produce request.
        """
        return await (await self._ensure_connected()).exchange(head, content)

    async def ask(
        self, head: RequestHead, content: bytes, take: Callable[[Answer], Awaitable[T]], *, may_be_twice: bool
    ) -> T:
        """Return the result of `take` for the first broker that answers in time.

        Raises `UpstreamError` if no broker answers. Unless `may_be_twice`, also if an answer was lost: the request is
        then not sent to another broker.
        """
        silent: set[Address] = set()
        while True:
            relay = await self._ensure_connected(besides=silent)
            try:
                async with asyncio.timeout(self._answer_timeout_ms / 1000):
                    answer = await relay.exchange(head, content)
                    assert answer is not None, "only a Produce request has no answer"
                    self._silent.forget(relay.address)
                    return await take(answer)
            except (UpstreamError, TimeoutError) as error:
                self._silent.note(relay.address)
                silent.add(relay.address)
                self.close()
                if not may_be_twice:
                    raise UpstreamError("the broker may have done what it did not answer") from error

    def check(self) -> None:
        """Raise `UpstreamError` if the broker that was asked is no longer live, so that its answer may never come."""
        if self._relay is not None and all(target.address != self._relay.address for target in self._targets()):
            raise UpstreamError("the broker left the cluster before it answered")

    def close(self) -> None:
        """Close the connection to the current broker. Idempotent."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()
            self._place.give_back(RELAY_BYTES)

    async def _ensure_connected(self, besides: Collection[Address] = ()) -> Relay:
        if self._relay is not None and self._may_keep(self._relay, self._sort_targets()):
            return self._relay
        self.close()
        if not self._place.take(RELAY_BYTES):
            raise UpstreamError("the connections have too much memory already to relay another one")
        failure: UpstreamError | None = None
        tried = set(besides)
        # Sort again for each attempt: another connection may have found a broker silent by now.
        while target := next((one for one in self._sort_targets() if one.address not in tried), None):
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
        self._place.give_back(RELAY_BYTES)
        raise failure or UpstreamError("no live broker answers" if besides else "no live broker is known")

    def _sort_targets(self) -> list[RelayTarget]:
        """Return the targets in the order of preference, as far as is known now."""
        return sorted(
            self._targets(),
            key=lambda target: (target.is_out_of_reach or target.address in self._silent, target.is_shutting_down),
        )

    def _may_keep(self, relay: Relay, targets: Sequence[RelayTarget]) -> bool:
        """Return True if the relay's broker is still a good choice. `targets` is sorted, with silent and stopping
        brokers last."""
        present = next((target for target in targets if target.address == relay.address), None)
        return not relay.has_ended and present is not None and present.is_shutting_down <= targets[0].is_shutting_down
