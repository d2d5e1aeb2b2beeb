"""Self-descriptions of live brokers: supported features, and if they take new replicas. Asked for when a broker
appears, and periodically.

A broker that does not answer is asked again at the next poll, and delays nothing: until then it supports no features. A
broker whose log directories do not answer counts as taking replicas until all brokers are asked again."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog
from kio.schema.api_versions.v4 import ApiVersionsResponse

from controller_core.client.errors import AdminError
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker, FeatureRange
from controller_core.polling.answers import read_supported_features
from controller_core.polling.questions import ask_cordoned, ask_versions

_ALL_AGAIN_S: Final = 60.0
"""Seconds between questions to all brokers. An upgraded broker is away for longer than a poll, so it is noticed anyway;
this interval is for cordons, and for corrections."""
_AT_ONCE: Final = 8
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDescription:
    """The self-description of one broker."""

    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    is_cordoned: bool = False
    """True if it takes no new replicas, because all its log directories are cordoned (KIP-1066)."""


class SelfDescriptions:
    """The self-descriptions of the brokers of one cluster."""

    def __init__(self, *, all_again_s: float = _ALL_AGAIN_S) -> None:
        self._known: dict[BrokerId, SelfDescription] = {}
        self._all_again_s = all_again_s
        self._asked_all_at_s: float | None = None
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def read(self, brokers: Collection[Broker], client: KeptClient) -> Mapping[BrokerId, SelfDescription]:
        """Return the brokers' self-descriptions, as far as they answer. `client` has the security settings."""
        now_s = asyncio.get_running_loop().time()
        is_due = self._asked_all_at_s is None or now_s >= self._asked_all_at_s + self._all_again_s
        if is_due:
            self._asked_all_at_s = now_s
        present = {broker.id for broker in brokers}
        self._known = {number: each for number, each in self._known.items() if number in present}
        asked = [broker for broker in brokers if is_due or broker.id not in self._known]
        for broker, said in zip(asked, await asyncio.gather(*(self._ask(each, client) for each in asked)), strict=True):
            if said is not None:
                self._known[broker.id] = said
        return dict(self._known)

    async def _ask(self, broker: Broker, client: KeptClient) -> SelfDescription | None:
        endpoint = broker.endpoints[0]
        one = client.restrict_to(Address(endpoint.host, endpoint.port))
        async with self._gate:
            try:
                versions = await ask_versions(one)
                is_cordoned = await self._is_cordoned(broker, one, versions)
                return SelfDescription(features=read_supported_features(versions), is_cordoned=is_cordoned)
            except AdminError as error:
                _log.warning("a broker does not describe itself", broker=broker.id, error=str(error))
                return None
            finally:
                one.close()

    @staticmethod
    async def _is_cordoned(broker: Broker, client: KeptClient, versions: ApiVersionsResponse) -> bool:
        try:
            return await ask_cordoned(client, versions)
        except AdminError as error:
            _log.warning("unknown whether a broker is cordoned", broker=broker.id, error=str(error))
            return False
