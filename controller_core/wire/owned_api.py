"""The APIs that the controller answers itself: which versions of which, and by what.

Two kinds: `OwnedApi`, which only the controller answers, each request in its turn; and `LocalApi`, which any broker
answers from what it knows, and the controller likewise, at once. The second kind may also put the question to a broker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from kio.schema.index import api_key_map
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.decoding import Undecodable
from controller_core.wire.frames import (
    RequestHead,
    Unencodable,
    decode_response,
    encode_response,
    with_length,
)
from controller_core.wire.versions import Versions

REFUSED_API_KEYS: Final = frozenset({4, 5, 6, 58})
"""LeaderAndIsr, StopReplica, UpdateMetadata, Envelope: only a controller, or a broker that forwards, sends them. Passed on,
they would let anyone who reaches the controller's port command a broker."""

KNOWN_API_KEYS: Final = frozenset(api_key_map) | {7} | REFUSED_API_KEYS
"""Every API key of Kafka 3.9 and 4; ControlledShutdown (7) and the refused ones are no longer in Kafka 4."""

LARGE_REQUEST_BYTES: Final = 64 * 1024
"""Requests above this size are decoded beside the event loop, so that nobody waits for that."""

Request = TypeVar("Request", bound=RequestPayload)


class AnswerFailedError(Exception):
    """What answers an API raised. The cause is what it raised."""


class NoAnswerNow(Exception):
    """There is no answer at present: whoever asks should ask another node. The connection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBroker:
    """Instead of an answer: a broker shall be asked the same."""

    amended: Callable[[ResponsePayload], ResponsePayload] | None = None
    """What to make of the broker's answer, in the version of the request; None: nothing."""
    otherwise: Callable[[], ResponsePayload] | None = None
    """The answer where no broker answers; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerQuestion:
    """An `AskBroker` in bytes."""

    answered: Callable[[bytes], bytes]
    """The response frame, from the content of the broker's response. Raises `Undecodable`, `AnswerFailedError`."""
    otherwise: Callable[[], bytes]
    """The response frame where no broker answers. Raises `NoAnswerNow`."""


class Api(Protocol):
    """One API that is answered here."""

    @property
    def key(self) -> int: ...

    async def respond(self, head: RequestHead, content: bytes) -> bytes | BrokerQuestion:
        """The whole response frame to a request's content, or what a broker is to be asked.

        Raises `Undecodable` for a version that is not served or a message that is broken, `Unencodable` for an answer
        that is no response to this request, `NoAnswerNow`, and `AnswerFailedError` where what answers raises."""
        ...


@dataclass(frozen=True, slots=True)
class OwnedApi(Generic[Request]):
    """One API that the controller answers: its versions, and what answers the newest of them.

    `answer` gets the decoded request and returns its response, both in the newest version. Where it raises, the client's
    connection is closed and the error logged; a broker then connects again and asks anew."""

    versions: Versions[Request]
    answer: Callable[[Request], Awaitable[ResponsePayload]]

    @property
    def key(self) -> int:
        return self.versions.key

    async def respond(self, head: RequestHead, content: bytes) -> bytes:
        """See `Api.respond`."""
        request = await _decoded(self.versions, head, content)
        try:
            response = await self.answer(self.versions.lifted(request))
        except Exception as error:
            raise _failed(request, error) from error
        return _encoded(self.versions, head, response)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalApi(Generic[Request]):
    """One API that is answered from what is known here: its versions, and what answers any of them.

    `answer` gets the request in its own version, and answers in that one or in the newest."""

    versions: Versions[Request]
    answer: Callable[[RequestPayload], Awaitable[ResponsePayload | AskBroker]]
    unsupported: Callable[[], ResponsePayload] | None = None
    """The response of version 0 to a version that is not served; None: the connection is closed."""

    @property
    def key(self) -> int:
        return self.versions.key

    async def respond(self, head: RequestHead, content: bytes) -> bytes | BrokerQuestion:
        """See `Api.respond`."""
        if head.api_version not in self.versions and self.unsupported is not None:
            return encode_response(self.unsupported(), head.correlation_id)
        request = await _decoded(self.versions, head, content)
        try:
            answer = await self.answer(request)
        except NoAnswerNow:
            raise
        except Exception as error:
            raise _failed(request, error) from error
        if isinstance(answer, AskBroker):
            return self._question(head, request, answer)
        return _encoded(self.versions, head, answer)

    def _question(self, head: RequestHead, request: RequestPayload, ask: AskBroker) -> BrokerQuestion:
        def answered(content: bytes) -> bytes:
            if ask.amended is None:
                return with_length(content)
            response = decode_response(self.versions.response_type(head.api_version), content)
            try:
                return _encoded(self.versions, head, ask.amended(response))
            except Exception as error:
                raise _failed(request, error) from error

        def otherwise() -> bytes:
            if ask.otherwise is None:
                raise NoAnswerNow("no live broker answers in the controller's stead")
            try:
                return _encoded(self.versions, head, ask.otherwise())
            except Exception as error:
                raise _failed(request, error) from error

        return BrokerQuestion(answered=answered, otherwise=otherwise)


def by_key(apis: Iterable[Api]) -> Mapping[int, Api]:
    """The APIs by their keys. Raises `ValueError` where two own the same key."""
    table: dict[int, Api] = {}
    for api in apis:
        if table.setdefault(api.key, api) is not api:
            raise ValueError(f"API {api.key} is owned twice: give one OwnedApi all its versions")
    return table


async def _decoded(versions: Versions[Any], head: RequestHead, content: bytes) -> RequestPayload:
    if head.api_version not in versions:
        raise Undecodable(
            f"version {head.api_version} of API {head.api_key} is not served, only {versions.min} to {versions.max}: "
            "brokers must run with inter.broker.protocol.version=3.9"
        )
    if len(content) > LARGE_REQUEST_BYTES:
        return await asyncio.to_thread(versions.decoded, content, head.api_version)
    return versions.decoded(content, head.api_version)


def _encoded(versions: Versions[Any], head: RequestHead, response: ResponsePayload) -> bytes:
    response = versions.lowered(response, head.api_version)
    if (response.__api_key__, response.__version__) != (head.api_key, head.api_version):
        raise Unencodable(f"{type(response).__name__} is no answer to version {head.api_version} of API {head.api_key}")
    return versions.encoded(response, head.correlation_id)


def _failed(request: RequestPayload, error: Exception) -> AnswerFailedError:
    return AnswerFailedError(f"{type(request).__name__} could not be answered: {error!r}")
