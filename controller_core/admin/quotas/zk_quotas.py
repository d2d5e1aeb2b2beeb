"""The quotas that Kafka keeps in ZooKeeper below `/config/users` and `/config/clients`, read for each request.

So a changed quota applies to the next request, and memory does not grow with the number of users. All quotas that may
apply to a client are read at once. However many clients ask, only a few reads run at the same time, each with a
timeout.
"""

import asyncio
import re
from collections.abc import Callable
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
from controller_core.zk.codecs.json_fields import describe
from controller_core.zk.session import ZkError, ZkSession

RATE: Final = "controller_mutation_rate"
AT_ONCE: Final = 16
TIMEOUT_S: Final = 5.0
_LARGE_BYTES: Final = 16 << 10
"""Larger configurations are decoded in another thread."""
_NUMBER: Final = re.compile(r"[+-]?(Infinity|NaN|(\d++(\.\d*+)?|\.\d++)(e[+-]?\d++)?[fd]?)", re.ASCII | re.IGNORECASE)
"""A number as Java parses it, except for hexadecimal ones."""
_MOST_CHARACTERS: Final = 1_000
"""Characters of a number at most. A configuration may have a megabyte of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The quota that applies to a client."""

    limit: Limit
    path: str
    """The znode that sets it."""
    sharing: Entity
    """The user and client id that share it."""


class ZkQuotas:
    """The quotas of a cluster. Bursts may use the quota of `windows_s()` seconds at once."""

    def __init__(self, zk: ZkSession, *, windows_s: Callable[[], float]) -> None:
        self.unusable: Final = UnusableZnodes()
        self._zk = zk
        self._windows_s = windows_s
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find_quota(self, user: str, client_id: str) -> Quota | None:
        """Return a client's quota, or None if it has none. Raises `NoAnswerNow` if ZooKeeper does not answer."""
        asked = [
            (each, paths.quota(*each.entity))
            for each in list_candidates(paths.sanitize(user), paths.sanitize(client_id))
            if all(map(_may_be_named, each.entity))
        ]
        try:
            async with asyncio.timeout(TIMEOUT_S), self._room:
                nodes = await self._zk.read_many([path for _, path in asked])
        except (ZkError, TimeoutError) as error:
            raise NoAnswerNow(f"quotas cannot be read: {str(error) or 'ZooKeeper did not answer in time'}") from error
        for (candidate, path), node in zip(asked, nodes, strict=True):
            rate = await self._rate_per_s(path, node.data if node else b"")
            if rate is not None:
                limit = Limit(rate_per_s=rate, burst=rate * self._windows_s())
                return Quota(limit=limit, path=path, sharing=candidate.sharing)
        return None

    async def _rate_per_s(self, path: str, data: bytes) -> float | None:
        """Return the rate of a znode, or None if it has none or an invalid one; then the next quota applies.

        Kafka refuses everything for a rate below 0, so such a rate counts as 0.
        """
        read = partial(read_rate_per_s, path, data)
        try:
            rate = await asyncio.to_thread(read) if len(data) > _LARGE_BYTES else read()
        except MalformedZnode as error:
            self.unusable.report(path, "unusable mutation quota: it is ignored", error)
            return None
        if rate is not None and rate < 0:
            self.unusable.report(path, "mutation quota below 0: it counts as 0", f"{RATE} is {rate}")
            return 0.0
        self.unusable.clear(path)
        return rate


def _may_be_named(name: str | None) -> bool:
    """Return True if a znode can have this name: longer names, "." and ".." cannot."""
    return name is None or (name not in (".", "..") and len(name) <= MAX_USER_NAME_LENGTH)


def read_rate_per_s(path: str, data: bytes) -> float | None:
    """Return the rate in a configuration, at most `MOST_PER_S`, or None if it has none. Raises `MalformedZnode`."""
    text = codecs.decode_config(data, path).get(RATE)
    if text is None:
        return None
    spelled = text.strip()
    is_number = len(spelled) <= _MOST_CHARACTERS and _NUMBER.fullmatch(spelled) is not None
    rate_per_s = float(spelled.rstrip("fFdD")) if is_number else nan
    if isnan(rate_per_s):
        raise MalformedZnode(path, f'"{RATE}" must be a number of at least 0, found {describe(text)}')
    return min(rate_per_s, MOST_PER_S)
