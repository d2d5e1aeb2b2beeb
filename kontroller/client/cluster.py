"""Who is in the cluster, and one call of it: each request finds its server, within the time of the whole call.

What is known of the cluster is kept, and found again where it proves to be old: a server says that it is not the
controller, or does not answer. What was certainly not done is asked again, and what may have been done is not.

**Servers that hang.** Nobody can tell one from a server that is slow. What any server can answer is asked of the next one,
too, when one takes long, and the first answer counts. What only the controller can answer, and changes nothing, is given up
after a while and asked of whoever is the controller then; each time for longer, so that a long answer comes in the end.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.request import MetadataRequestTopic
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import BrokerId
from controller_core.wire.client.request_client import (
    Address,
    AnswerLost,
    AnswerUnreadable,
    ConnectionEnded,
    ControllerUnreachable,
    NotAdmitted,
    RequestClient,
    RequestError,
    VersionUnsupported,
    is_refused_by_another,
)
from controller_core.wire.codecs.frames import Unencodable
from kontroller.client.errors import (
    AdminError,
    InvalidArgument,
    NotAdmittedError,
    NotAnsweredError,
    OutcomeUnknown,
    Unreachable,
    Unsupported,
)
from kontroller.client.properties import ClientProperties

Response = TypeVar("Response", bound=ResponsePayload)
T = TypeVar("T")
Question = Callable[[int], Awaitable[T]]
"""What is asked of one server, and is given up after so many milliseconds."""
PATIENCE_MS: Final = 5_000
GROWTH_OF_PATIENCE: Final = 2
"""How long one server may take for what may be asked again, at first; and how that grows."""
_PAUSE_S: Final = 0.2
_NEAR_THE_END_S: Final = 0.01
_NEXT_SERVER_AFTER_S: Final = 1.0
_TROUBLES_TOLD: Final = 5
_SHARE_OF_SERVER: Final = 0.9
"""Of the time that is left, so that its answer that it had too little still comes."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """What is known of a cluster."""

    client: RequestClient
    default_timeout_ms: int
    brokers: dict[BrokerId, Address] = field(default_factory=dict)
    controller: BrokerId | None = None
    cluster_id: str | None = None
    former: tuple[Address, ...] = ()
    """Where brokers were before that was forgotten."""
    answered_last: Address | None = None
    """Who is asked first, so that a server that hangs costs its time once."""

    @classmethod
    def of(cls, properties: ClientProperties) -> "Cluster":
        """Not connected with yet. Raises `InvalidArgument`."""
        client = RequestClient(
            properties.bootstrap_servers,
            client_id=properties.client_id,
            timeout_ms=properties.default_api_timeout_ms,
            connect_timeout_ms=properties.socket_connection_setup_timeout_ms,
            security=properties.security_source(),
            negotiates=True,
        )
        return cls(client=client, default_timeout_ms=properties.default_api_timeout_ms)

    def call(self, timeout_ms: int | None = None) -> "Call":
        """One call, which has so long for all that it asks."""
        allowed_ms = self.default_timeout_ms if timeout_ms is None else timeout_ms
        if allowed_ms <= 0:
            raise InvalidArgument(f"a call cannot be done in {allowed_ms} ms: give it more than 0")
        return Call(
            cluster=self, allowed_ms=allowed_ms, deadline_s=asyncio.get_running_loop().time() + allowed_ms / 1000
        )

    def learn(self, metadata: MetadataResponse) -> None:
        """Keeps who is there."""
        self.brokers = {BrokerId(each.node_id): Address(each.host, int(each.port)) for each in metadata.brokers}
        self.controller = BrokerId(metadata.controller_id) if metadata.controller_id >= 0 else None
        self.cluster_id = metadata.cluster_id

    @property
    def servers(self) -> tuple[Address, ...]:
        """Who may be asked for what any server knows, and in which order."""
        last = () if self.answered_last is None else (self.answered_last,)
        return tuple(dict.fromkeys((*last, *self.client.bootstrap, *self.brokers.values(), *self.former)))

    @property
    def brokers_beside_the_controller(self) -> list[tuple[BrokerId, Address]]:
        """All that are known, but for the controller."""
        return [(broker, address) for broker, address in self.brokers.items() if broker != self.controller]

    def forget(self) -> None:
        """Nothing that was known need be true any more, but who was there may still be asked."""
        self.former = tuple(self.brokers.values()) or self.former
        self.brokers, self.controller = {}, None


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a client. Its methods raise `Unreachable`, `NotAdmittedError`, `Unsupported` and `InvalidArgument`."""

    cluster: Cluster
    allowed_ms: int
    deadline_s: float
    trouble: str | None = None
    """What went wrong last: why the call did not come about, when its time is over."""

    @property
    def left_ms(self) -> int:
        """What is left of its time; raises `Unreachable` where that is over."""
        left_ms = round((self.deadline_s - asyncio.get_running_loop().time()) * 1000)
        if left_ms <= 0:
            why = self.trouble or "allow more time, or look what goes on"
            raise Unreachable(f"it did not come about in {self.allowed_ms} ms: {why}")
        return left_ms

    @property
    def for_server(self) -> i32Timedelta:
        """How long a server may take that is asked now."""
        left_ms = min(self.left_ms, (1 << 31) - 1)
        return i32Timedelta.parse(timedelta(milliseconds=max(1, int(left_ms * _SHARE_OF_SERVER))))

    def note(self, trouble: str) -> None:
        """Keeps what went wrong. What only the end of the time has cut off says less than what was before."""
        is_over = asyncio.get_running_loop().time() >= self.deadline_s - _NEAR_THE_END_S
        if not is_over or self.trouble is None:
            self.trouble = trouble

    async def pause(self, pause_s: float = _PAUSE_S) -> None:
        """Waits before something is looked at again."""
        await asyncio.sleep(min(pause_s, self.left_ms / 1000))

    async def metadata(self, *topics: str, of_all: bool = False) -> MetadataResponse:
        """What the first server says that answers, of some topics, all or none; who is there is kept."""
        asked = (
            None if of_all else tuple(MetadataRequestTopic(topic_id=None, name=WireTopicName(each)) for each in topics)
        )
        request = MetadataRequest(
            topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        metadata = await self.ask_any(request, MetadataResponse)
        self.cluster.learn(metadata)
        return metadata

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """What the first server says that answers, of those that were named and those that are known. Only for what may be
        asked twice."""
        return await self.first_of(lambda address: partial(self.ask_at, address, request, response_type))

    async def first_of(self, question: Callable[[Address], Question[T]]) -> T:
        """The first answer that some server gives to a question that is put to it, which may be put to several at once.

        A question that raises `Unreachable` or `OutcomeUnknown` is put to all of them again, as long as the call may take.
        What else is wrong with a server ends the call only where no other answers."""
        patience_ms = PATIENCE_MS
        while True:
            answers, troubles = await self._first_answer(question, min(self.left_ms, patience_ms))
            for answer in answers:
                return answer
            for trouble in troubles:
                if not isinstance(trouble, Unreachable | OutcomeUnknown):
                    raise trouble
            self.note("; ".join(map(str, troubles[:_TROUBLES_TOLD])))
            patience_ms *= GROWTH_OF_PATIENCE
            await self.pause()

    async def _first_answer(
        self, question: Callable[[Address], Question[T]], patience_ms: int
    ) -> tuple[tuple[T, ...], list[AdminError]]:
        """Asks each server once, the next one beside those that take long. An answer, or what went wrong with each."""
        servers = deque(self.cluster.servers)
        asked: dict[asyncio.Future[T], Address] = {}
        troubles: list[AdminError] = []
        try:
            while servers or asked:
                if servers:
                    server = servers.popleft()
                    asked[asyncio.ensure_future(question(server)(patience_ms))] = server
                before_next_s = _NEXT_SERVER_AFTER_S if servers else None
                ended, _ = await asyncio.wait(asked, timeout=before_next_s, return_when=asyncio.FIRST_COMPLETED)
                for one in ended:
                    server = asked.pop(one)
                    try:
                        answer = one.result()
                    except AdminError as error:
                        troubles.append(error)
                    else:
                        self.cluster.answered_last = server
                        return (answer,), troubles
        finally:
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return (), troubles

    async def ask_controller(
        self,
        request: RequestPayload,
        response_type: type[Response],
        *,
        changes_nothing: bool = False,
        patience_ms: int | None = None,
    ) -> Response:
        """The controller's answer, whoever that is by then. What changes nothing is asked again where the answer was lost;
        else that raises `OutcomeUnknown`, at the latest after `patience_ms`."""
        if patience_ms is None:
            patience_ms = PATIENCE_MS if changes_nothing else self.allowed_ms
        while True:
            address = await self.controller_address()
            allowed_ms = min(self.left_ms, patience_ms)
            try:
                response = await self.ask_at(address, request, response_type, allowed_ms)
            except Unreachable as error:
                self.note(str(error))
            except OutcomeUnknown as error:
                self.cluster.forget()
                if not changes_nothing:
                    raise
                self.note(str(error))
                patience_ms *= GROWTH_OF_PATIENCE
            else:
                if is_refused_by_another(response):
                    self.note(f"{address} is not the controller")
                elif changes_nothing and getattr(response, "error_code", None) is ErrorCode.request_timed_out:
                    self.note(f"{address} could not answer in the time that it had")
                else:
                    return response
            self.cluster.forget()
            await self.pause()

    async def ask_broker(self, broker: BrokerId, request: RequestPayload, response_type: type[Response]) -> Response:
        """A broker's answer. One that finds no controller, and so did nothing, is asked again. Raises `OutcomeUnknown`."""
        while True:
            if broker not in self.cluster.brokers:
                await self.metadata()
            address = self.cluster.brokers.get(broker)
            if address is None:
                raise Unreachable(f"broker {broker} is not there: start it")
            try:
                response = await self.ask_at(address, request, response_type)
            except (Unreachable, OutcomeUnknown):
                self.cluster.forget()
                raise
            if not is_refused_by_another(response):
                return response
            self.note(f"broker {broker} finds no controller")
            await self.pause()

    async def controller_address(self) -> Address:
        """Where the controller is. Waits for one as long as the call may take."""
        while True:
            known = self.cluster.brokers.get(self.cluster.controller) if self.cluster.controller is not None else None
            if known is not None:
                return known
            await self.metadata()
            if self.cluster.controller not in self.cluster.brokers:
                self.note("the cluster has no controller")
                await self.pause()

    async def ask_at(
        self, address: Address, request: RequestPayload, response_type: type[Response], allowed_ms: int | None = None
    ) -> Response:
        """What one server says, which is asked once. Raises `OutcomeUnknown`, too."""
        client = self.cluster.client.restrict_to(address).replace_timeout(
            self.left_ms if allowed_ms is None else allowed_ms
        )
        return await _translated(partial(client.ask_one, request, response_type))


async def _translated(ask: Callable[[], Awaitable[Response]]) -> Response:
    try:
        return await ask()
    except RequestError as error:
        raise _as_admin_error(error) from error
    except Unencodable as error:
        raise InvalidArgument(f"this cannot be asked for: {error}") from error


def _as_admin_error(error: RequestError) -> AdminError:
    match error:
        case ControllerUnreachable():
            return Unreachable(str(error))
        case AnswerLost():
            kind = NotAnsweredError if isinstance(error, ConnectionEnded) else OutcomeUnknown
            return kind(f"{error}: it may have been done; describe it first")
        case VersionUnsupported():
            return Unsupported(str(error))
        case NotAdmitted():
            return NotAdmittedError(str(error))
        case AnswerUnreadable():
            return NotAdmittedError(f"{error}: is it a Kafka server, and is security.protocol right?")
        case _:
            return AdminError(str(error))
