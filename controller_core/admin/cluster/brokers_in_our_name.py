"""Questions that only brokers have an answer to, put to one of them by the controller itself, as who it is to them.

A request of a client is never passed on where clients are somebody: a broker would take the controller for who asks. What
the controller asks here it has judged before, as a broker would, so it is its own question; and there are few of these.

Each is asked over a connection of its own, as many at once as no broker minds; what only administrators may ask does not
wait for what anybody may. A broker that does not answer is asked once, and then the next one.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.access import Need
from controller_core.model.metadata import Broker
from controller_core.wire.api_table import need_of
from controller_core.wire.client.request_client import Address, AnswerLost, RequestClient, RequestError
from controller_core.wire.connections.broker_properties import SourceOfListener
from controller_core.wire.listener.owned_api import NoAnswerNow

AT_ONCE: Final = 8
"""Of those who need the same right."""
TIMEOUT_MS: Final = 5_000
"""For one broker to be connected to and to answer."""

Response = TypeVar("Response", bound=ResponsePayload)
LiveBrokers = Callable[[], Iterable[Broker]]
"""Those of the present term, best first; none where there is no term."""


class BrokersInOurName:
    """Live brokers, at the listener by which the controller speaks to them."""

    def __init__(self, listener: str, security: SourceOfListener, brokers: LiveBrokers) -> None:
        self._listener = listener
        self._security = security
        self._brokers = brokers
        self._turns = itertools.count()
        self._places = {need: asyncio.Semaphore(AT_ONCE) for need in Need}

    async def ask(self, request: RequestPayload, response_type: type[Response], *, may_be_twice: bool) -> Response:
        """What the first broker says that answers. What may not be done twice is asked of no other when an answer is lost.

        Raises `NoAnswerNow`."""
        async with self._places[need_of(int(request.__api_key__))]:
            troubles = []
            for client in self._clients():
                try:
                    return await client.ask_one(request, response_type)
                except AnswerLost as error:
                    troubles.append(str(error))
                    if not may_be_twice:
                        break
                except RequestError as error:
                    troubles.append(str(error))
            raise NoAnswerNow("; ".join(troubles) or "no live broker can be asked")

    def _clients(self) -> list[RequestClient]:
        """Each time beginning with another broker: all do their share."""
        found = [
            RequestClient(
                [Address(endpoint.host, endpoint.port)],
                timeout_ms=TIMEOUT_MS,
                security=self._security(self._listener, endpoint.security_protocol),
            )
            for broker in self._brokers()
            if (endpoint := broker.find_endpoint(self._listener))
        ]
        first = next(self._turns) % max(len(found), 1)
        return [*found[first:], *found[:first]]
