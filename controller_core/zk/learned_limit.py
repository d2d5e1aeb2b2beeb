"""A session that learns the request limit of its server from lost connections.

If a server's `jute.maxbuffer` is smaller than configured here, it closes the connection of a client that sends more,
without a message. Sending the same again loses the connection again, with the watches and requests of everybody who
shares it. So if the connection is lost a few times in a row after a large write, such writes are refused as too large
for some time, unsent. Small writes are never suspected, and a success of that size ends the suspicion.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.request_size import too_large
from controller_core.zk.session import ConnectionLost, WriteOp, ZkError, ZkSession, transact_alone

NEVER_SUSPECTED_BYTES: Final = 1 << 18
"""The smallest limit that anybody is expected to configure."""
_LOSSES: Final = 3
_FORGOTTEN_AFTER_S: Final = 600.0


class LearnedLimitSession(DelegatingSession):
    """`max_request_bytes` is the configured limit, or the smaller one that was learned."""

    def __init__(self, session: ZkSession, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(session)
        self._monotonic_s = monotonic_s
        self._suspected_bytes: int | None = None
        self._losses = 0
        self._since_s = 0.0

    @property
    def max_request_bytes(self) -> int:
        told = self._session.max_request_bytes
        if self._suspected_bytes is None or self._losses < _LOSSES:
            return told
        if self._monotonic_s() - self._since_s > _FORGOTTEN_AFTER_S:
            return told
        return min(told, self._suspected_bytes - 1)

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await transact_alone(self, ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        max_bytes = self.max_request_bytes
        sizes = [self.request_bytes(ops) for ops in transactions]
        sent = [at for at, size_bytes in enumerate(sizes) if size_bytes <= max_bytes]
        answers = await self._session.transact_many([transactions[at] for at in sent])
        self._learn([(sizes[at], answer) for at, answer in zip(sent, answers, strict=True)])
        results = dict(zip(sent, answers, strict=True))
        return [
            results[at] if at in results else too_large(ops, sizes[at], max_bytes)
            for at, ops in enumerate(transactions)
        ]

    def _learn(self, answered: Sequence[tuple[int, tuple[str, ...] | ZkError]]) -> None:
        arrived = [size_bytes for size_bytes, answer in answered if not isinstance(answer, ConnectionLost)]
        if self._suspected_bytes is not None and max(arrived, default=0) >= self._suspected_bytes:
            self._suspected_bytes, self._losses = None, 0
        lost = max((size for size, answer in answered if isinstance(answer, ConnectionLost)), default=0)
        if lost > NEVER_SUSPECTED_BYTES:
            self._suspected_bytes = min(lost, self._suspected_bytes or lost)
            self._losses += 1
            self._since_s = self._monotonic_s()
