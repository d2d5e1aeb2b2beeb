"""Writes to ZooKeeper that only the leader may make, however late they arrive.

A Lease has a znode in each cluster. A leader rewrites it when a session begins, and every transaction checks that its
version is unchanged. So delayed transactions of an earlier leader are refused as a whole.
Anybody with rights in one cluster can also write that znode. So a leader that finds another version asks the Lease. If
the Lease is still its own, it continues, and other clusters are not affected.
"""

from collections.abc import Sequence
from typing import Final

from controller_core.zk import paths
from controller_core.zk.compare_and_set import ensure_znodes, put
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import (
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    NoNode,
    WriteOp,
    ZkError,
    ZkSession,
    ZkVersion,
    transact_alone,
)
from controller_operator.leading.leadership import Leadership

_FIRST: Final = ZkVersion(0)


class FencedSession(DelegatingSession):
    """A `ZkSession` whose writes also raise `NotLeading` if this process does not lead, or cannot know."""

    def __init__(self, session: ZkSession, leadership: Leadership) -> None:
        """Call `raise_fence` before the first write."""
        super().__init__(session)
        self._leadership = leadership
        self._fence = Check(path=paths.operator_fence(leadership.lease_uid), version=_FIRST)

    async def raise_fence(self) -> None:
        """End the writes that earlier leaders may still send. Raises `NotLeading`, and `ZkError`s."""
        path = self._fence.path
        await ensure_znodes(self._session, [Create(path=paths.KONTROLLER), Create(path=paths.OPERATORS)], self._write)
        (present,) = await self._session.read_many([path])
        await self._write([put(path, present, b"")])
        self._fence = Check(path=path, version=ZkVersion(present.version + 1) if present else _FIRST)

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        return self._session.request_bytes([*ops, self._fence])

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await transact_alone(self, ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        answers = await self._send(transactions)
        met = [at for at, answer in enumerate(answers) if isinstance(answer, _FenceMet)]
        if met:
            # Anybody with rights can write the fence. If the Lease is still ours, renew the fence and try again.
            await self._leadership.confirm()
            await self.raise_fence()
            again = await self._send([transactions[at] for at in met])
            for at, answer in zip(met, again, strict=True):
                answers[at] = answer
        return answers

    async def _send(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        self._leadership.require()
        answers = await self._session.transact_many([[*ops, self._fence] for ops in transactions])
        return [_strip_fence(ops, answer) for ops, answer in zip(transactions, answers, strict=True)]

    async def _write(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        # Checked between the read and the write: a delayed write then meets the version of a newer leader.
        self._leadership.require()
        return await self._session.transact(ops)


class _FenceMet(ConnectionLost):
    """A transaction was refused because the fence has changed. The caller must look again."""


def _strip_fence(ops: Sequence[WriteOp], answer: tuple[str, ...] | ZkError) -> tuple[str, ...] | ZkError:
    if not isinstance(answer, ZkError):
        return answer[: len(ops)]
    if isinstance(answer, BadVersion | NoNode) and answer.failed.index == len(ops):
        met = _FenceMet(f"{answer.failed.op.path} was written or removed by somebody else")
        met.__cause__ = answer
        return met
    return answer
