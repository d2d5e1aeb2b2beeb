"""Requests that only brokers can answer, sent to one of them by the controller in its own name.

With authentication on, requests of clients are not relayed, because the broker would see the controller as the caller.
The controller authorizes these few requests itself, as a broker would, so they become its own. Each uses a new
connection, and their number is limited. Requests that need administrators' rights do not wait for those that everybody
may send. If a broker does not answer, the next one is asked.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AdminError, OutcomeUnknown
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.access import Need
from controller_core.model.metadata import Broker
from controller_core.wire.api_table import need_of
from controller_core.wire.connections.broker_properties import SourceOfListener
from controller_core.wire.listener.owned_api import NoAnswerNow

AT_ONCE: Final = 8
"""Concurrent requests that need the same right."""
TIMEOUT_MS: Final = 5_000
"""Milliseconds for the connection to one broker and its answer."""

Response = TypeVar("Response", bound=ResponsePayload)
LiveBrokers = Callable[[], Iterable[Broker]]
"""Returns the live brokers of the current term, best first; none outside of a term."""


class BrokersInOurName:
    """The live brokers, at the listener that the controller uses."""

    def __init__(self, listener: str, security: SourceOfListener, brokers: LiveBrokers) -> None:
        self._listener = listener
        self._security = security
        self._brokers = brokers
        self._turns = itertools.count()
        self._places = {need: asyncio.Semaphore(AT_ONCE) for need in Need}

    async def ask(self, request: RequestPayload, response_type: type[Response], *, may_be_twice: bool) -> Response:
        """Return the answer of the first broker that gives one. Raises `NoAnswerNow`.

        Unless `may_be_twice`, a request whose answer was lost is not sent to another broker.
        """
        async with self._places[need_of(int(request.__api_key__))]:
            troubles = []
            for client in self._clients():
                try:
                    return await client.ask_one(request, response_type)
                except OutcomeUnknown as error:
                    troubles.append(str(error))
                    if not may_be_twice:
                        break
                except AdminError as error:
                    troubles.append(str(error))
            raise NoAnswerNow("; ".join(troubles) or "no live broker can be asked")

    def _clients(self) -> list[RequestClient]:
        """Return a client for each broker, starting with another one each time to spread the load."""
        found = [
            RequestClient(
                [Address(endpoint.host, endpoint.port)],
                timeout_ms=TIMEOUT_MS,
                security=self._security(self._listener, endpoint.security_protocol),
                limits_answers=True,
            )
            for broker in self._brokers()
            if (endpoint := broker.find_endpoint(self._listener))
        ]
        first = next(self._turns) % max(len(found), 1)
        return [*found[first:], *found[:first]]
