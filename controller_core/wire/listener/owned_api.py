"""The APIs that the controller answers itself: which versions of which, and by what.

Two kinds: `OwnedApi`, which only the controller answers, each request in its turn; and `LocalApi`, which any broker
answers from what it knows, and the controller likewise, at once. The second kind may also put the question to a broker.

A request within the limits of its API (`request_limits`) may still be large. Then it is decoded, and its answer encoded,
beside the event loop (`workers`). One with more entries than its API takes is refused by the API's own answer.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.authorization.principal import NOBODY_IN_PARTICULAR, Caller
from controller_core.wire.codecs.decoding import TooManyItems, Undecodable
from controller_core.wire.codecs.frames import (
    LENGTH_BYTES,
    RequestHead,
    Unencodable,
    decode_response,
    encode_request,
    encode_response,
    read_client_id,
)
from controller_core.wire.codecs.versions import Versions, empty
from controller_core.wire.limits.request_limits import RequestLimits, limits_of
from controller_core.wire.listener.turns import Turns
from controller_core.wire.listener.workers import LARGE_BYTES, Lane, beside
from controller_core.wire.messages import NO_THROTTLE

INTER_BROKER_API_KEYS: Final = frozenset({7, 56, 67})
"""ControlledShutdown, AlterPartition, AllocateProducerIds: what only brokers ask, and only of their controller."""

CONTROL_API_KEYS: Final = frozenset({4, 5, 6})
"""LeaderAndIsr, StopReplica, UpdateMetadata: what only the controller asks, and only of brokers."""

LARGE_ANSWER_ITEMS: Final = 500
"""Answers with more items are encoded beside the event loop."""

Request = TypeVar("Request", bound=RequestPayload)
P = ParamSpec("P")
T = TypeVar("T")


class AnswerFailedError(Exception):
    """What answers an API raised. The cause is what it raised."""


class VersionNotServed(Undecodable):
    """A request of a version that is not served. Whoever sends it does so again and again, and is reported elsewhere."""


class NoAnswerNow(Exception):
    """There is no answer at present: whoever asks should ask another node. The connection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBroker:
    """Instead of an answer: a broker shall be asked the same."""

    older: RequestPayload | None = None
    """What it is asked where it does not know the version of the request: the same in one that it knows."""
    amended: Callable[[ResponsePayload], ResponsePayload] | None = None
    """What to make of the broker's answer, in the version in which it was asked; None: nothing."""
    otherwise: Callable[[], Awaitable[ResponsePayload]] | None = None
    """The answer where no broker answers; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerQuestion:
    """An `AskBroker` in bytes."""

    head: RequestHead
    content: bytes
    """What the broker is asked."""
    answered: Callable[[bytes], bytes] | None
    """The response frame, from the content of the broker's response; None: that one, as it comes.

    Raises `Undecodable`, `AnswerFailedError`."""
    otherwise: Callable[[], Awaitable[bytes]]
    """The response frame where no broker answers. Raises `NoAnswerNow`."""
    older: "BrokerQuestion | None" = None
    """The same in an older version, for a broker whose answer is none to this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How something was asked."""

    caller: Caller
    client_id: str
    """What the client calls itself; "" where it does not."""
    version: int
    """Of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """A response frame, and how long whoever gets it is not heard after it."""

    frame: bytes
    throttle_ms: int


class Api(Protocol):
    """One API that is answered here."""

    @property
    def key(self) -> int: ...

    @property
    def limits(self) -> RequestLimits:
        """How large a request may be."""
        ...

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | Throttled | BrokerQuestion:
        """The whole response frame to a request's content, or what a broker is to be asked; empty where none is wanted.

        Raises `Undecodable` for a version that is not served or a message that is broken or has too many items,
        `Unencodable` for an answer that is no response to this request, `NoAnswerNow`, and `AnswerFailedError` where
        what answers raises."""
        ...

    async def refused(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """The whole response frame that refuses a request with an error; None where the API has none for that.

        Without its content only an API whose responses have an error for the request as a whole can refuse it.
        Raises `Undecodable`, `Unencodable`, and `AnswerFailedError`."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedApi(Generic[Request]):
    """One API that the controller answers: its versions, what answers the newest of them, and what refuses it.

    `answer` gets the decoded request and returns its response, both in the newest version; None where the client wants no
    response. Where it raises, the client's connection is closed and, but for `NoAnswerNow`, the error logged; a broker then
    connects again and asks anew."""

    versions: Versions[Request]
    answer: Callable[[Request], Awaitable[ResponsePayload | None]]
    refuse: Callable[[Request, ErrorCode], ResponsePayload] | None = None
    report_unserved: Callable[[Versions[Any], RequestHead, bytes], None] = lambda versions, head, content: None
    """Is given each request of a version that is not served, before its connection is closed."""
    limited: RequestLimits | None = None
    """None: as the controller takes requests of this API."""
    answer_to: Callable[[Asked], Callable[[Request], Awaitable[ResponsePayload | None]]] | None = None
    """What answers who asks how; None: `answer`, whoever asks."""

    @property
    def key(self) -> int:
        return self.versions.key

    @property
    def limits(self) -> RequestLimits:
        """See `Api.limits`."""
        return self.limited or limits_of(self.key)

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | Throttled:
        """See `Api.respond`."""
        if head.api_version not in self.versions:
            self.report_unserved(self.versions, head, content)
        lane = _lane(self.key)
        request = await _worked(lane, content, self._lifted, head, content)
        if self.refuse is not None and _entries(request) > self.limits.max_entries:
            return await beside(lane, self._refusal, head, request, ErrorCode.invalid_request)
        try:
            response = await self._answer_to(head, content, caller)(request)
        except NoAnswerNow:
            raise
        except Exception as error:
            raise _failed(request, error) from error
        if response is None:
            return b""
        frame = await _answered(lane, content, self.versions, head, response)
        throttle_ms = _throttle_ms(response)
        return frame if throttle_ms <= 0 else Throttled(frame=frame, throttle_ms=throttle_ms)

    async def refused(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """See `Api.refused`."""
        if self.refuse is None:
            return None
        if content is None:
            has_error = any(
                field.name == "error_code" for field in fields(self.versions.response_type(self.versions.max))
            )
            return self._refusal(head, empty(self.versions.newest), error_code) if has_error else None
        lane = Lane.CLIENTS  # who is refused is hardly a broker
        request = await _worked(lane, content, self._lifted, head, content)
        return await _worked(lane, content, self._refusal, head, request, error_code)

    def _answer_to(
        self, head: RequestHead, content: bytes, caller: Caller
    ) -> Callable[[Request], Awaitable[ResponsePayload | None]]:
        if self.answer_to is None:
            return self.answer
        asked = Asked(caller=caller, client_id=read_client_id(content) or "", version=head.api_version)
        return self.answer_to(asked)

    def _lifted(self, head: RequestHead, content: bytes) -> Request:
        return self.versions.lifted(_decoded(self.versions, head, content, self.limits.max_items))

    def _refusal(self, head: RequestHead, request: Request, error_code: ErrorCode) -> bytes:
        assert self.refuse is not None, "asked only where it is there"
        try:
            response = self.refuse(request, error_code)
        except Exception as error:
            raise _failed(request, error) from error
        return _encoded(self.versions, head, response)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalApi(Generic[Request]):
    """One API that is answered from what is known here: its versions, what answers any of them, and what refuses it.

    `answer` gets the request in its own version, and answers in that one or in the newest. `refuse` is given, and
    gives, the newest."""

    versions: Versions[Request]
    answer: Callable[[RequestPayload], Awaitable[ResponsePayload | AskBroker]]
    unsupported: Callable[[], ResponsePayload] | None = None
    """The response of version 0 to a version that is not served; None: the connection is closed."""
    refuse: Callable[[Request, ErrorCode], ResponsePayload] | None = None
    is_of_any_broker: bool = False
    """Whether a broker may be asked the same where a request has more items than are read here. What a broker answers for
    itself, or does to itself, is never put to one."""
    turns: Turns = field(default_factory=Turns, compare=False, repr=False)
    limited: RequestLimits | None = None
    """None: as the controller takes requests of this API."""
    answer_to: Callable[[Caller], Callable[[RequestPayload], Awaitable[ResponsePayload | AskBroker]]] | None = None
    """What answers whom; None: `answer`, whoever asks."""

    @property
    def key(self) -> int:
        return self.versions.key

    @property
    def limits(self) -> RequestLimits:
        """See `Api.limits`."""
        return self.limited or limits_of(self.key)

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | BrokerQuestion:
        """See `Api.respond`."""
        if head.api_version not in self.versions and self.unsupported is not None:
            return encode_response(self.unsupported(), head.correlation_id)
        lane = _lane(self.key)
        try:
            request = await _worked(lane, content, _decoded, self.versions, head, content, self.limits.max_items)
        except TooManyItems:
            if not self.is_of_any_broker:
                raise
            return self._question(head, content, AskBroker())
        async with self.turns.turn():
            try:
                answer = await (self.answer_to(caller) if self.answer_to else self.answer)(request)
            except NoAnswerNow:
                raise
            except Exception as error:
                raise _failed(request, error) from error
            if isinstance(answer, AskBroker):
                return self._question(head, content, answer)
            return await _answered(lane, content, self.versions, head, answer)

    async def refused(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """See `Api.refused`."""
        if self.refuse is None:
            return None
        owned = OwnedApi(self.versions, _never, self.refuse, limited=self.limited)
        return await owned.refused(head, content, error_code)

    def _question(self, head: RequestHead, asked: bytes, ask: AskBroker) -> BrokerQuestion:
        question = self._put(head, head, asked, ask)
        if ask.older is None:
            return question
        older = RequestHead(head.api_key, int(ask.older.__version__), head.correlation_id)
        content = encode_request(ask.older, head.correlation_id, read_client_id(asked) or "")[LENGTH_BYTES:]
        return replace(question, older=self._put(head, older, content, ask))

    def _put(self, head: RequestHead, put: RequestHead, asked: bytes, ask: AskBroker) -> BrokerQuestion:
        """`head`: that of the client's request; `put`: that of the request to the broker, whose content is `asked`."""

        def answered(content: bytes) -> bytes:
            assert ask.amended is not None, "asked only where it is there"
            response = decode_response(self.versions.response_type(put.api_version), content)
            try:
                return _encoded(self.versions, head, ask.amended(response))
            except Exception as error:
                raise _failed(self.versions, error) from error

        async def otherwise() -> bytes:
            if ask.otherwise is None:
                raise NoAnswerNow("no live broker answers in the controller's stead")
            async with self.turns.turn():
                try:
                    response = await ask.otherwise()
                except Exception as error:
                    raise _failed(self.versions, error) from error
                return await _answered(_lane(self.key), asked, self.versions, head, response)

        return BrokerQuestion(
            head=put, content=asked, answered=None if ask.amended is None else answered, otherwise=otherwise
        )


def by_key(apis: Iterable[Api]) -> Mapping[int, Api]:
    """The APIs by their keys. Raises `ValueError` where two own the same key."""
    table: dict[int, Api] = {}
    for api in apis:
        if table.setdefault(api.key, api) is not api:
            raise ValueError(f"API {api.key} is owned twice: give one OwnedApi all its versions")
    return table


async def _worked(lane: Lane, content: bytes, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The work on a request of that content: beside the event loop where it is large."""
    if len(content) > LARGE_BYTES:
        return await beside(lane, work, *args, **kwargs)
    return work(*args, **kwargs)


async def _answered(
    lane: Lane, content: bytes, versions: Versions[Any], head: RequestHead, response: ResponsePayload
) -> bytes:
    """The response frame, made beside the event loop where it, or the request, is large: either may be alone."""
    if len(content) > LARGE_BYTES or _is_large(response):
        return await beside(lane, _encoded, versions, head, response)
    return _encoded(versions, head, response)


def _throttle_ms(response: ResponsePayload) -> int:
    """How long a response tells its client to wait. All that can say so is that of Kafka's quotas."""
    throttle_time: timedelta = getattr(response, "throttle_time", NO_THROTTLE)
    return throttle_time // timedelta(milliseconds=1)


def _lane(api_key: int) -> Lane:
    return Lane.BROKERS if api_key in INTER_BROKER_API_KEYS | CONTROL_API_KEYS else Lane.CLIENTS


def _entries(message: Any) -> int:
    """How many items the arrays at the top of a message have; those that are bytes already do not count."""
    return sum(len(array) for array in _arrays(message))


def _is_large(response: ResponsePayload) -> bool:
    """Whether a response has many items down to the second level. They are not all counted to find that."""
    items = 0
    for array in _arrays(response):
        for item in array:
            items += 1 + _entries(item)
            if items > LARGE_ANSWER_ITEMS:
                return True
    return False


def _arrays(message: Any) -> Iterator[tuple[Any, ...]]:
    if is_dataclass(message):
        values = (getattr(message, field.name) for field in fields(message))
        yield from (value for value in values if isinstance(value, tuple))


async def _never(_: RequestPayload) -> ResponsePayload:
    raise AssertionError("only its refusals are asked for")


def _decoded(versions: Versions[Any], head: RequestHead, content: bytes, most_items: int) -> RequestPayload:
    if head.api_version not in versions:
        raise VersionNotServed(
            f"version {head.api_version} of API {head.api_key} is not served, only {versions.min} to {versions.max}: "
            "brokers must run with an inter.broker.protocol.version from 2.8 to 3.9"
        )
    return versions.decoded(content, head.api_version, most_items=most_items)


def _encoded(versions: Versions[Any], head: RequestHead, response: ResponsePayload) -> bytes:
    response = versions.lowered(response, head.api_version)
    if (response.__api_key__, response.__version__) != (head.api_key, head.api_version):
        raise Unencodable(f"{type(response).__name__} is no answer to version {head.api_version} of API {head.api_key}")
    return versions.encoded(response, head.correlation_id)


def _failed(asked: RequestPayload | Versions[Any], error: Exception) -> AnswerFailedError:
    kind = asked.newest if isinstance(asked, Versions) else type(asked)
    return AnswerFailedError(f"{kind.__name__} could not be answered: {error!r}")
