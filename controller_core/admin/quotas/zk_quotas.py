"""The quotas that Kafka keeps in ZooKeeper, below `/config/users` and `/config/clients`, looked up for each request.

So a quota that changes counts at the next request, and however many users there are, nothing is kept of them. All that may
count for one who asks is read at once. However many ask, few ask ZooKeeper at the same time, and none of them for long.
"""

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from typing import Final

from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.model.quotas.entities import Entity, list_candidates
from controller_core.model.quotas.token_bucket import MOST_PER_S, Limit
from controller_core.model.scram import MAX_USER_NAME_LENGTH
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.codecs.json_fields import described
from controller_core.zk.session import ZkError, ZkSession

RATE: Final = "controller_mutation_rate"
AT_ONCE: Final = 16
TIMEOUT_S: Final = 5.0
_LARGE_BYTES: Final = 16 << 10
"""What is larger is decoded in a thread of its own."""
_NUMBER: Final = re.compile(r"[+-]?(Infinity|NaN|(\d++(\.\d*+)?|\.\d++)(e[+-]?\d++)?[fd]?)", re.ASCII | re.IGNORECASE)
"""As Java reads one, but for those of base 16."""
_MOST_CHARACTERS: Final = 1_000
"""Of a number: somebody may have written a megabyte of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The one that counts for somebody."""

    limit: Limit
    path: str
    """Where it is set."""
    sharing: Entity
    """Those who share it."""


class ZkQuotas:
    """Those of a cluster. `windows_s`: for how long the rate may be used up at once."""

    def __init__(self, zk: ZkSession, *, windows_s: float) -> None:
        self.unusable: Final = UnusableZnodes()
        self._zk = zk
        self._windows_s = windows_s
        self._room = asyncio.Semaphore(AT_ONCE)

    async def of(self, user: str, client_id: str) -> Quota | None:
        """None where somebody has none. Raises `NoAnswerNow` where ZooKeeper does not say."""
        asked = [
            (each, paths.quota(*each.entity))
            for each in list_candidates(paths.sanitized(user), paths.sanitized(client_id))
            if all(map(_may_be_named, each.entity))
        ]
        try:
            async with asyncio.timeout(TIMEOUT_S), self._room:
                nodes = await self._zk.read_many([path for _, path in asked])
        except (ZkError, TimeoutError) as error:
            raise NoAnswerNow(f"quotas cannot be read: {str(error) or 'it took too long'}") from error
        for (candidate, path), node in zip(asked, nodes, strict=True):
            rate = await self._rate_per_s(path, node.data if node else b"")
            if rate is not None:
                limit = Limit(rate_per_s=rate, burst=rate * self._windows_s)
                return Quota(limit=limit, path=path, sharing=candidate.sharing)
        return None

    async def _rate_per_s(self, path: str, data: bytes) -> float | None:
        """None where nothing is set, or nothing that is a number: then the next quota counts. What is below 0 refuses
        all with Kafka, so it counts as 0."""
        read = partial(read_rate_per_s, path, data)
        try:
            rate = await asyncio.to_thread(read) if len(data) > _LARGE_BYTES else read()
        except MalformedZnode as error:
            self.unusable.report(path, "unusable quota of mutations: it counts as none", error)
            return None
        if rate is not None and rate < 0:
            self.unusable.report(path, "quota of mutations below 0: it counts as 0", f"{RATE} is {rate}")
            return 0.0
        self.unusable.clear(path)
        return rate


def _may_be_named(name: str | None) -> bool:
    """Whether there may be a znode of that name: what is longer, or means a place, is none."""
    return name is None or (name not in (".", "..") and len(name) <= MAX_USER_NAME_LENGTH)


def read_rate_per_s(path: str, data: bytes) -> float | None:
    """What a configuration says of it, at most `MOST_PER_S`; None where it says nothing. Raises `MalformedZnode`."""
    text = codecs.decode_config(data, path).get(RATE)
    if text is None:
        return None
    spelled = text.strip()
    is_number = len(spelled) <= _MOST_CHARACTERS and _NUMBER.fullmatch(spelled) is not None
    rate_per_s = float(spelled.rstrip("fFdD")) if is_number else nan
    if isnan(rate_per_s):
        raise MalformedZnode(path, f'"{RATE}" must be a number from 0 on, found {described(text)}')
    return min(rate_per_s, MOST_PER_S)
