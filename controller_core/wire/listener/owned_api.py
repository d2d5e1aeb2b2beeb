"""The APIs that the controller answers itself: their versions, and the functions that answer.

There are two kinds. Only the controller answers an `OwnedApi`, each request in turn. Any broker can answer a `LocalApi`
from what it knows, and so does the controller, at once; it may also ask a broker instead. A large request within its
limits (`request_limits`) is decoded, and its answer encoded, in another thread (`workers`). A request with too many
entries is refused by the API's own answer.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from functools import partial
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
from controller_core.wire.listener.turns import NoTurns, Turns
from controller_core.wire.listener.workers import LARGE_BYTES, Lane, run_in_thread
from controller_core.wire.messages import NO_THROTTLE

INTER_BROKER_API_KEYS: Final = frozenset({7, 56, 67})
"""ControlledShutdown, AlterPartition, AllocateProducerIds: only brokers send them, and only to their controller."""

CONTROL_API_KEYS: Final = frozenset({4, 5, 6})
"""LeaderAndIsr, StopReplica, UpdateMetadata: only the controller sends them, and only to brokers."""

LARGE_ANSWER_ITEMS: Final = 500
"""Answers with more items are encoded in another thread."""

Request = TypeVar("Request", bound=RequestPayload)
P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)


class AnswerFailedError(Exception):
    """The function that answers an API failed. The cause is its exception."""


class VersionNotServed(Undecodable):
    """A request in an unsupported version. Its sender repeats it, and is reported elsewhere."""


class NoAnswerNow(Exception):
    """There is no answer now, so the client should ask another node. The connection is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBroker:
    """Returned instead of an answer if a broker shall answer the request."""

    instead: RequestPayload | None = None
    """The request for the broker, in the version of the client's. None passes that one on."""
    older: RequestPayload | None = None
    """The same request in an older version, for a broker that does not know the first one."""
    amended: Callable[[ResponsePayload], ResponsePayload] | None = None
    """Amends the broker's answer, in the version of the broker's request. None passes it on unchanged."""
    otherwise: Callable[[], Awaitable[ResponsePayload]] | None = None
    """Answers if no broker does. None if there is no such answer."""
    judged_as: int | None = None
    """The API whose right the caller needs, too, for the broker to be asked. None: the request's own is enough."""
    may_be_twice: bool = True
    """False if the request changes something. It is then not sent to another broker if its answer was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerQuestion:
    """An `AskBroker` in encoded form."""

    head: RequestHead
    content: bytes
    """The request for the broker."""
    answered: Callable[[bytes], bytes] | None
    """Returns the response frame for the content of the broker's response. None passes that on as it comes.

    Raises `Undecodable` and `AnswerFailedError`.
    """
    otherwise: Callable[[], Awaitable[bytes]]
    """Returns the response frame if no broker answers. Raises `NoAnswerNow`, and `TooManyItems`."""
    judged_as: int | None = None
    """See `AskBroker.judged_as`."""
    may_be_twice: bool = True
    """See `AskBroker.may_be_twice`."""
    older: "BrokerQuestion | None" = None
    """The same question in an older version, for a broker that does not understand this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Generic[T_co]):
    """An answer that waits for something else and no longer needs its request, whose memory is given back."""

    finish: Callable[[], Awaitable[T_co]]
    """Waits, and returns the answer. It must not refer to the request."""
    size_bytes: int
    """The memory that it takes until then."""

    def then(self, convert: Callable[[T_co], Awaitable[U]]) -> "Pending[U]":
        """Return this answer in another form."""
        finish = self.finish

        async def finish_converted() -> U:
            return await convert(await finish())

        return Pending(finish=finish_converted, size_bytes=self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The circumstances of a request."""

    caller: Caller
    client_id: str
    """The name that the client gives itself; "" if it gives none."""
    version: int
    """The version of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """A response frame, and the time for which its client is not read after it."""

    frame: bytes
    throttle_ms: int


OwnedAnswer = ResponsePayload | Pending[ResponsePayload] | None
"""The answer of an `OwnedApi`; None if the client wants no response."""


class Api(Protocol):
    """One API that is answered here."""

    @property
    def key(self) -> int: ...

    @property
    def limits(self) -> RequestLimits:
        """The limits of a request's size."""
        ...

    @property
    def may_wait(self) -> bool:
        """True if answers wait for something else, so they are not made one after the other."""
        ...

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | Throttled | BrokerQuestion | Pending[bytes | Throttled]:
        """Return the whole response frame to a request, empty if the client wants none, or a question for a broker.

        A frame that waits for something is `Pending`, and its `finish` raises the same errors.

        Raises `Undecodable` for an unsupported version, or a message that is broken or has too many items;
        `Unencodable` for an answer that does not fit the request; `NoAnswerNow`; and `AnswerFailedError` if the
        answering function fails.
        """
        ...

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """Return the whole response frame that refuses a request, or None if the API has none.

        Without the content, only an API whose responses have a top-level error can refuse. Raises `Undecodable`,
        `Unencodable` and `AnswerFailedError`.
        """
        ...


@dataclass(frozen=True, slots=True)
class OwnedApi(Generic[Request]):
    """One API that the controller answers: its versions, and the functions that answer and refuse the newest of them.

    `answer` gets the decoded request and returns its response, both in the newest version, or None if the client wants
    no response. The response may be `Pending`. If `answer` raises, the client's connection is closed, and the error is
    logged unless it is `NoAnswerNow`. A broker then reconnects and asks again.
    """

    versions: Versions[Request]
    answer: Callable[[Request], Awaitable[OwnedAnswer]]
    refuse: Callable[[Request, ErrorCode], ResponsePayload] | None = None
    report_unserved: Callable[[Versions[Any], RequestHead, bytes], None] = lambda versions, head, content: None
    """Called for each request in an unsupported version before its connection is closed."""
    limited: RequestLimits | None = None
    """The size limits. None uses those of the controller for this API."""
    answer_to: Callable[[Asked], Callable[[Request], Awaitable[OwnedAnswer]]] | None = None
    """Returns the answering function for a caller. None uses `answer` for all callers."""

    @property
    def key(self) -> int:
        return self.versions.key

    @property
    def limits(self) -> RequestLimits:
        """See `Api.limits`."""
        return self.limited or limits_of(self.key)

    @property
    def may_wait(self) -> bool:
        """See `Api.may_wait`."""
        return False

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | Throttled | Pending[bytes | Throttled]:
        """See `Api.respond`."""
        if head.api_version not in self.versions:
            self.report_unserved(self.versions, head, content)
        lane = _lane(self.key)
        request = await _work(lane, content, self._decode_newest, head, content)
        if self.refuse is not None and _entries(request) > self.limits.max_entries:
            return await run_in_thread(lane, self._refusal, head, request, ErrorCode.invalid_request)
        response = await _run(self.versions, self._answer_to(head, content, caller), request)
        if not isinstance(response, Pending):
            return await self._make_frame(lane, content, head, response)
        finish = partial(_run, self.versions, response.finish)
        # Without the content: it must not stay in memory.
        return replace(response, finish=finish).then(partial(self._make_frame, lane, b"", head))

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """See `Api.make_refusal`."""
        if self.refuse is None:
            return None
        if content is None:
            has_error = any(
                field.name == "error_code" for field in fields(self.versions.response_type(self.versions.max))
            )
            return self._refusal(head, empty(self.versions.newest), error_code) if has_error else None
        lane = Lane.CLIENTS  # a refused caller is hardly a broker
        request = await _work(lane, content, self._decode_newest, head, content)
        return await _work(lane, content, self._refusal, head, request, error_code)

    async def _make_frame(
        self, lane: Lane, content: bytes, head: RequestHead, response: ResponsePayload | None
    ) -> bytes | Throttled:
        if response is None:
            return b""
        frame = await _encode_answer(lane, content, self.versions, head, response)
        throttle_ms = _throttle_ms(response)
        return frame if throttle_ms <= 0 else Throttled(frame=frame, throttle_ms=throttle_ms)

    def _answer_to(
        self, head: RequestHead, content: bytes, caller: Caller
    ) -> Callable[[Request], Awaitable[OwnedAnswer]]:
        if self.answer_to is None:
            return self.answer
        asked = Asked(caller=caller, client_id=read_client_id(content) or "", version=head.api_version)
        return self.answer_to(asked)

    def _decode_newest(self, head: RequestHead, content: bytes) -> Request:
        return self.versions.lift(_decode(self.versions, head, content, self.limits.max_items))

    def _refusal(self, head: RequestHead, request: Request, error_code: ErrorCode) -> bytes:
        assert self.refuse is not None, "called only if it is set"
        try:
            response = self.refuse(request, error_code)
        except Exception as error:
            raise _make_failure(self.versions, error) from error
        return _encode(self.versions, head, response)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalApi(Generic[Request]):
    """One API that is answered from local knowledge: its versions, and the functions that answer and refuse.

    `answer` gets the request in its own version, and answers in that one or in the newest. `refuse` takes and returns
    the newest.
    """

    versions: Versions[Request]
    answer: Callable[[RequestPayload], Awaitable[ResponsePayload | AskBroker]]
    unsupported: Callable[[], ResponsePayload] | None = None
    """Returns the response of version 0 to an unsupported version. None closes the connection."""
    refuse: Callable[[Request, ErrorCode], ResponsePayload] | None = None
    is_of_any_broker: bool = False
    """True if a broker may be asked instead when a request has too many items. Requests about the node itself never go
    to a broker."""
    judged_as: int | None = None
    """See `AskBroker.judged_as`, for such a request."""
    may_be_twice: bool = True
    """See `AskBroker.may_be_twice`, for such a request."""
    turns: Turns = field(default_factory=Turns, compare=False, repr=False)
    limited: RequestLimits | None = None
    """The size limits. None uses those of the controller for this API."""
    answer_to: Callable[[Caller], Callable[[RequestPayload], Awaitable[ResponsePayload | AskBroker]]] | None = None
    """Returns the answering function for a caller. None uses `answer` for all callers."""

    @property
    def key(self) -> int:
        return self.versions.key

    @property
    def limits(self) -> RequestLimits:
        """See `Api.limits`."""
        return self.limited or limits_of(self.key)

    @property
    def may_wait(self) -> bool:
        """See `Api.may_wait`."""
        return isinstance(self.turns, NoTurns)

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | BrokerQuestion:
        """See `Api.respond`."""
        if head.api_version not in self.versions and self.unsupported is not None:
            return encode_response(self.unsupported(), head.correlation_id)
        lane = _lane(self.key)
        try:
            request = await _work(lane, content, _decode, self.versions, head, content, self.limits.max_items)
        except TooManyItems as error:
            if not self.is_of_any_broker:
                raise
            ask = AskBroker(judged_as=self.judged_as, may_be_twice=self.may_be_twice)
            return replace(self._question(head, content, ask), otherwise=partial(_fail, error))
        async with self.turns.turn():
            answer = await _run(self.versions, self.answer_to(caller) if self.answer_to else self.answer, request)
            if isinstance(answer, AskBroker):
                return self._question(head, content, answer)
            return await _encode_answer(lane, content, self.versions, head, answer)

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """See `Api.make_refusal`."""
        if self.refuse is None:
            return None
        owned = OwnedApi(self.versions, _never, self.refuse, limited=self.limited)
        return await owned.make_refusal(head, content, error_code)

    def _question(self, head: RequestHead, asked: bytes, ask: AskBroker) -> BrokerQuestion:
        def encode(request: RequestPayload) -> bytes:
            return encode_request(request, head.correlation_id, read_client_id(asked) or "")[LENGTH_BYTES:]

        question = self._put(head, head, asked if ask.instead is None else encode(ask.instead), ask)
        if ask.older is None:
            return question
        older = RequestHead(head.api_key, int(ask.older.__version__), head.correlation_id)
        return replace(question, older=self._put(head, older, encode(ask.older), ask))

    def _put(self, head: RequestHead, put: RequestHead, asked: bytes, ask: AskBroker) -> BrokerQuestion:
        """Encode a question. `head` is that of the client's request, `put` that of the broker's request with the
        content `asked`."""

        def amend_answer(content: bytes) -> bytes:
            assert ask.amended is not None, "called only if it is set"
            response = decode_response(self.versions.response_type(put.api_version), content)
            try:
                return _encode(self.versions, head, ask.amended(response))
            except Exception as error:
                raise _make_failure(self.versions, error) from error

        async def otherwise() -> bytes:
            if ask.otherwise is None:
                raise NoAnswerNow("no live broker answers for the controller")
            async with self.turns.turn():
                try:
                    response = await ask.otherwise()
                except Exception as error:
                    raise _make_failure(self.versions, error) from error
                return await _encode_answer(_lane(self.key), asked, self.versions, head, response)

        return BrokerQuestion(
            head=put,
            content=asked,
            answered=None if ask.amended is None else amend_answer,
            otherwise=otherwise,
            judged_as=ask.judged_as,
            may_be_twice=ask.may_be_twice,
        )


def index_by_key(apis: Iterable[Api]) -> Mapping[int, Api]:
    """Return the APIs by key. Raises `ValueError` if two of them have the same key."""
    table: dict[int, Api] = {}
    for api in apis:
        if table.setdefault(api.key, api) is not api:
            raise ValueError(f"API {api.key} is owned twice: give one OwnedApi all its versions")
    return table


async def _work(lane: Lane, content: bytes, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the work on a request of that content, in another thread if it is large."""
    if len(content) > LARGE_BYTES:
        return await run_in_thread(lane, work, *args, **kwargs)
    return work(*args, **kwargs)


async def _run(versions: Versions[Any], answer: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an answering function of an API. Raises `AnswerFailedError` if it fails, and `NoAnswerNow`."""
    try:
        return await answer(*args, **kwargs)
    except NoAnswerNow:
        raise
    except Exception as error:
        raise _make_failure(versions, error) from error


async def _encode_answer(
    lane: Lane, content: bytes, versions: Versions[Any], head: RequestHead, response: ResponsePayload
) -> bytes:
    """Encode the response frame, in another thread if it or the request is large."""
    if len(content) > LARGE_BYTES or _is_large(response):
        return await run_in_thread(lane, _encode, versions, head, response)
    return _encode(versions, head, response)


def _throttle_ms(response: ResponsePayload) -> int:
    """Return the throttle time of a response in milliseconds. Only responses with Kafka's quotas have one."""
    throttle_time: timedelta = getattr(response, "throttle_time", NO_THROTTLE)
    return throttle_time // timedelta(milliseconds=1)


def _lane(api_key: int) -> Lane:
    return Lane.BROKERS if api_key in INTER_BROKER_API_KEYS | CONTROL_API_KEYS else Lane.CLIENTS


def _entries(message: Any) -> int:
    """Return the number of items in the top-level arrays of a message."""
    return sum(len(array) for array in _arrays(message))


def _is_large(response: ResponsePayload) -> bool:
    """Return True if a response has many items in its first two levels. Stops counting as soon as that is known."""
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


async def _fail(error: Exception) -> bytes:
    raise error


async def _never(_: RequestPayload) -> ResponsePayload:
    raise AssertionError("only its refusals are used")


def _decode(versions: Versions[Any], head: RequestHead, content: bytes, most_items: int) -> RequestPayload:
    if head.api_version not in versions:
        raise VersionNotServed(
            f"version {head.api_version} of API {head.api_key} is not supported, "
            f"only {versions.min} to {versions.max}: brokers must run with an inter.broker.protocol.version "
            "from 2.8 to 3.9"
        )
    return versions.decode(content, head.api_version, most_items=most_items)


def _encode(versions: Versions[Any], head: RequestHead, response: ResponsePayload) -> bytes:
    response = versions.lower(response, head.api_version)
    if (response.__api_key__, response.__version__) != (head.api_key, head.api_version):
        raise Unencodable(f"{type(response).__name__} does not answer version {head.api_version} of API {head.api_key}")
    return versions.encode(response, head.correlation_id)


def _make_failure(versions: Versions[Any], error: Exception) -> AnswerFailedError:
    return AnswerFailedError(f"{versions.newest.__name__} could not be answered: {error!r}")
