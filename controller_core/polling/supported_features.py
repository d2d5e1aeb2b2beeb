"""What each live broker supports of features, which each says of itself alone: asked when it comes, and now and then again.

A broker that does not answer is asked again at the next look, and holds nothing up: until then it supports nothing.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

import structlog

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker, FeatureRange
from controller_core.polling.answers import supported_in
from controller_core.polling.questions import NoKRaftError, ask_versions
from controller_core.wire.client.kept_client import KeptClient
from controller_core.wire.client.request_client import Address, RequestError

_ALL_AGAIN_S: Final = 60.0
"""One that was upgraded was away for longer than a look, and one that was taken for another is corrected."""
_AT_ONCE: Final = 8
_log = structlog.get_logger(__name__)

Supported = Mapping[BrokerId, Mapping[str, FeatureRange]]


class SupportedFeatures:
    """Of the brokers of one cluster."""

    def __init__(self) -> None:
        self._known: dict[BrokerId, Mapping[str, FeatureRange]] = {}
        self._asked_all_at_s: float | None = None
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def of(self, brokers: Collection[Broker], client: KeptClient) -> Supported:
        """What the brokers support, as far as they say; `client` knows how they are spoken to."""
        now_s = asyncio.get_running_loop().time()
        is_due = self._asked_all_at_s is None or now_s >= self._asked_all_at_s + _ALL_AGAIN_S
        if is_due:
            self._asked_all_at_s = now_s
        present = {broker.id for broker in brokers}
        self._known = {number: each for number, each in self._known.items() if number in present}
        asked = [broker for broker in brokers if is_due or broker.id not in self._known]
        for broker, said in zip(asked, await asyncio.gather(*(self._ask(each, client) for each in asked)), strict=True):
            if said is not None:
                self._known[broker.id] = said
        return dict(self._known)

    async def _ask(self, broker: Broker, client: KeptClient) -> Mapping[str, FeatureRange] | None:
        endpoint = broker.endpoints[0]
        one = client.at(Address(endpoint.host, endpoint.port))
        async with self._gate:
            try:
                return supported_in(await ask_versions(one))
            except (RequestError, NoKRaftError) as error:
                _log.warning("not known what a broker supports", broker=broker.id, error=str(error))
                return None
            finally:
                one.close()
