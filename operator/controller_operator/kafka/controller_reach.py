"""Keeps a controller that does not answer from delaying unrelated work.

A request lasts until the client's timeout, and every worker could wait that long. So after a failure only one request
at a time tries again, and all others fail at once with the last error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AdminError, InvalidArgument, Unreachable
from controller_core.client.transport.request_client import CLIENT_ID, Address, ControllerClient
from controller_core.wire.connections.security import SecuritySource
from controller_operator.kafka.broker_listeners import OpenClient

Response = TypeVar("Response", bound=ResponsePayload)
Bootstrap = tuple[Address, ...]


@dataclass(slots=True)
class _Away:
    """A controller that did not answer."""

    trouble: str
    is_tried: bool = False


class ControllerReach:
    """Makes clients of clusters' controllers. The clients share the knowledge of unreachable controllers."""

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client
        self._away: dict[Bootstrap, _Away] = {}

    def client(
        self, bootstrap: Sequence[Address], security: SecuritySource | None = None, client_id: str = CLIENT_ID
    ) -> ControllerClient:
        """Return a client of the cluster with these bootstrap servers, which names itself by the id."""
        client = self._open_client(bootstrap, security=security, client_id=client_id)
        return _Client(client, self._away, tuple(bootstrap))


@dataclass(frozen=True, slots=True)
class RefusingClient:
    """A client of a controller that cannot be asked: each request fails with the error."""

    error: AdminError

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        raise self.error


class _Client:
    def __init__(self, client: ControllerClient, away: dict[Bootstrap, _Away], bootstrap: Bootstrap) -> None:
        self._client = client
        self._away = away
        self._bootstrap = bootstrap

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        known = self._away.get(self._bootstrap)
        if known is None:
            return await self._ask(request, response_type)
        if known.is_tried:
            raise Unreachable(known.trouble)
        known.is_tried = True
        try:
            return await self._ask(request, response_type)
        finally:
            known.is_tried = False

    async def _ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        try:
            response = await self._client.ask(request, response_type)
        except InvalidArgument:
            raise  # nobody was asked
        except AdminError as error:
            self._away.setdefault(self._bootstrap, _Away(str(error))).trouble = str(error)
            raise
        self._away.pop(self._bootstrap, None)
        return response
