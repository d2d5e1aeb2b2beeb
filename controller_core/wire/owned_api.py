"""The APIs that the controller answers itself: which versions of which, and by what."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kio.schema.index import api_key_map
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.decoding import Undecodable
from controller_core.wire.frames import RequestHead, Unencodable, decode_request, encode_response
from controller_core.wire.versions import Versions

REFUSED_API_KEYS: Final = frozenset({4, 5, 6})
"""LeaderAndIsr, StopReplica, UpdateMetadata: only a controller sends them, and only to brokers. Passed on, they would
let anyone who reaches the controller's port command a broker."""

KNOWN_API_KEYS: Final = frozenset(api_key_map) | {7} | REFUSED_API_KEYS
"""Every API key of Kafka 3.9 and 4; ControlledShutdown (7) and the refused ones are no longer in Kafka 4."""

Request = TypeVar("Request", bound=RequestPayload)


class AnswerFailedError(Exception):
    """What answers an API raised. The cause is what it raised."""


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
        """The whole response frame to a request's content.

        Raises `Undecodable` for a version that is not served or a message that is broken, `Unencodable` for an answer
        that is no response to this request, `AnswerFailedError` where `answer` raises."""
        versions = self.versions
        if head.api_version not in versions:
            raise Undecodable(
                f"version {head.api_version} of API {head.api_key} is not served, only {versions.min} to {versions.max}: "
                "brokers must run with inter.broker.protocol.version=3.9"
            )
        request_type = versions.request_type(head.api_version)
        request = decode_request(request_type, content)
        try:
            response = versions.lowered(await self.answer(versions.lifted(request)), head.api_version)
        except Exception as error:
            raise AnswerFailedError(f"{request_type.__name__} could not be answered: {error!r}") from error
        if (response.__api_key__, response.__version__) != (head.api_key, head.api_version):
            raise Unencodable(f"{type(response).__name__} answers no {request_type.__name__} {head.api_version}")
        return encode_response(response, head.correlation_id)


def by_key(apis: Iterable[OwnedApi[Any]]) -> Mapping[int, OwnedApi[Any]]:
    """The APIs by their keys. Raises `ValueError` where two own the same key."""
    table: dict[int, OwnedApi[Any]] = {}
    for api in apis:
        if table.setdefault(api.key, api) is not api:
            raise ValueError(f"API {api.key} is owned twice: give one OwnedApi all its versions")
    return table
