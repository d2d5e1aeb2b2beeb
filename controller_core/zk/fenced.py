"""Writes that only the current controller can do: each transaction first checks the version of `/controller_epoch`.

A new controller rewrites that znode, so delayed writes of a deposed controller fail (KAFKA-6082). Kafka checks it in
one small transaction per partition. `FencedWriter` packs many groups of operations into each transaction, because
thousands of partitions change their leader at once.

One group's failure must not affect another. ZooKeeper names only the first failed operation. So after a failure the
writer reads all paths of the transaction once, drops the groups that could not succeed, and sends the rest again. A
read does not show ACLs and children. If one of them was the cause, the rest is sent in a transaction for each group.
After a lost connection the writer reads back too, and sends only groups that were not applied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from controller_core.zk import paths
from controller_core.zk.packing import TransactionLimits
from controller_core.zk.session import (
    AccessRefused,
    Check,
    ConnectionLost,
    FailedOp,
    NotEmpty,
    OperationRefused,
    SessionExpired,
    SetData,
    TooLarge,
    TransactionFailed,
    WriteOp,
    ZkError,
    ZkNode,
    ZkSession,
    ZkVersion,
)
from controller_core.zk.write_outcomes import first_failure, is_applied, paths_to_read

K = TypeVar("K")

_FRUITLESS_RECONNECTS: Final = 5
_BYTES_PER_TRANSACTION: Final = 700_000
"""Lost connections in a row, without any written group, before the writer gives up. ZooKeeper closes the connection if
a request is larger than its `jute.maxbuffer`, and gives no other sign."""


_ROLE: Final = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)
"""Without access to these znodes there is no controller."""


class Fenced(Exception):
    """Another controller has a newer epoch, or the epoch's znode is gone. This process is no longer the controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome(Generic[K]):
    """The result of each group, in the order in which the groups were given."""

    written: tuple[K, ...]
    failed: dict[K, TransactionFailed]


@dataclass(slots=True)
class _Progress(Generic[K]):
    """The groups of one call. Pending groups are sent again when they are known to be neither applied nor hopeless."""

    pending: dict[K, Sequence[WriteOp]]
    unknown: list[K] = field(default_factory=list)
    """Groups in flight when the connection was lost; they may have been applied."""
    suspect: list[K] = field(default_factory=list)
    """Groups refused because of another group in their transaction; they may be hopeless themselves."""
    alone: set[K] = field(default_factory=set)
    """Groups to send in transactions of their own."""
    failed: dict[K, TransactionFailed] = field(default_factory=dict)

    def refuse(self, batch: Sequence[K], error: TransactionFailed) -> None:
        """Attribute a refused transaction to the group with the failed operation. The first operation was the fence."""
        index = error.failed.index - 1
        for key in batch:
            size = len(self.pending[key])
            if 0 <= index < size:
                self.fail(key, type(error)(FailedOp(index=index, op=error.failed.op)))
            else:
                self.suspect.append(key)
                if isinstance(error, NotEmpty | OperationRefused):
                    self.alone.add(key)
            index -= size

    def fail(self, key: K, why: TransactionFailed) -> None:
        del self.pending[key]
        self.failed[key] = why


class FencedWriter:
    """Writes groups of operations in one controller epoch, in the session that won it.

    `epoch_version` is the version of `/controller_epoch` that this controller wrote when it was elected.
    """

    def __init__(
        self,
        session: ZkSession,
        epoch_version: ZkVersion,
        *,
        ops_per_transaction: int = 1000,
        reconnect_timeout_ms: int,
    ) -> None:
        self._session = session
        self._session_id = session.session_id
        self._fence = Check(path=paths.CONTROLLER_EPOCH, version=epoch_version)
        self._limits = TransactionLimits(
            max_ops=ops_per_transaction,
            max_bytes=min(_BYTES_PER_TRANSACTION, session.max_request_bytes),
            size_bytes=session.request_bytes,
        )
        self._reconnect_timeout_ms = reconnect_timeout_ms
        self._applied = 0

    @property
    def applied(self) -> int:
        """Number of transactions that were or may have been applied. If it is unchanged, nothing was written in
        between."""
        return self._applied

    def room_bytes(self, ops: Sequence[WriteOp]) -> int:
        """Return the bytes left in one ZooKeeper write with the operations; negative if they are too large."""
        return self._session.max_request_bytes - self._session.request_bytes([self._fence, *ops])

    def why_too_large(self, ops: Sequence[WriteOp]) -> str | None:
        """Return the reason why operations are too large to be written together, or None."""
        room_bytes, max_bytes = self.room_bytes(ops), self._session.max_request_bytes
        if room_bytes >= 0:
            return None
        return f"the write has {max_bytes - room_bytes} bytes; ZooKeeper's limit is {max_bytes} (its jute.maxbuffer)"

    async def write(self, groups: Mapping[K, Sequence[WriteOp]]) -> WriteOutcome[K]:
        """Apply each group as a whole or not at all. The failure of one group does not affect another.

        Groups must not depend on each other: which groups share a transaction, and so their order after a failure, is
        undefined. A sequential `Create` may be applied twice if the connection is lost.

        Raises `Fenced`, `SessionExpired`, `AccessRefused` (to the role's znodes, or of the credentials), and
        `ConnectionLost` if the connection did not return in time or was lost repeatedly; some groups may have been
        written then. A group above ZooKeeper's limit fails as `TooLarge`, one that an ACL denies as `OperationRefused`.
        """
        progress = _Progress(dict(groups))
        fruitless_reconnects = 0
        while progress.pending:
            pending_before = len(progress.pending)
            try:
                await self._settle_unknown(progress)
                await self._drop_hopeless(progress)
                await self._send(progress)
            except ConnectionLost as error:
                fruitless_reconnects = 0 if len(progress.pending) < pending_before else fruitless_reconnects + 1
                if fruitless_reconnects > _FRUITLESS_RECONNECTS:
                    raise ConnectionLost(
                        f"ZooKeeper closed the connection {fruitless_reconnects} times in a row during a write. If the "
                        f"network works, its jute.maxbuffer is below {self._session.max_request_bytes} bytes: set its "
                        "real value with --zookeeper-jute-maxbuffer-bytes"
                    ) from error
                await self._reconnect()
        return WriteOutcome(
            written=tuple(key for key in groups if key not in progress.failed) if progress.failed else tuple(groups),
            failed={key: progress.failed[key] for key in groups if key in progress.failed},
        )

    async def transact(self, ops: Sequence[WriteOp]) -> None:
        """Apply one fenced group like `ZkSession.transact`. Raises its `TransactionFailed`, and the errors of
        `write`."""
        for refused in (await self.write({None: ops})).failed.values():
            raise refused

    async def raise_fence(self, epoch: bytes) -> None:
        """Rewrite `/controller_epoch`, and fence every later write by its new version. No other write may be in flight.

        Raises `Fenced`, also if the connection was lost and it is unknown whether this writer raised the epoch.
        """
        self._require_session()
        write = SetData(path=paths.CONTROLLER_EPOCH, data=epoch, version=self._fence.version)
        try:
            await self._session.transact([write])
        except (TransactionFailed, ConnectionLost) as error:
            raise Fenced(f"{paths.CONTROLLER_EPOCH} may not have been raised: {error}") from error
        self._fence = Check(path=paths.CONTROLLER_EPOCH, version=ZkVersion(self._fence.version + 1))

    async def _send(self, progress: _Progress[K]) -> None:
        """Send all pending groups, pipelined. Raises `ConnectionLost` after it has noted which groups are unknown."""
        self._require_session()
        pending, alone = progress.pending, progress.alone
        together = {key: group for key, group in pending.items() if key not in alone} if alone else pending
        batches = self._limits.pack(together, [self._fence])
        if alone:
            batches += [[key] for key in pending if key in alone]
        transactions = [[self._fence, *_ops(progress.pending, batch)] for batch in batches]
        self._applied += len(transactions)  # refused transactions are subtracted below
        lost: ConnectionLost | None = None
        for batch, result in zip(batches, await self._session.transact_many(transactions), strict=True):
            match result:
                case tuple():
                    for key in batch:
                        del progress.pending[key]
                case TooLarge():
                    self._applied -= 1
                    for key in batch:
                        progress.fail(key, result)
                case TransactionFailed():
                    self._applied -= 1
                    self._raise_if_fenced(result)
                    progress.refuse(batch, result)
                case AccessRefused(denied=FailedOp() as denied) if denied.op.path not in _ROLE:
                    self._applied -= 1
                    progress.refuse(batch, OperationRefused(denied))
                case ConnectionLost():
                    lost = result
                    progress.unknown += batch
                case ZkError():
                    raise result
        if lost is not None:
            raise lost

    async def _settle_unknown(self, progress: _Progress[K]) -> None:
        """Read back the groups that were in flight when the connection was lost, and remove those that were applied.

        The fence is sent first, alone. A transaction passes through ZooKeeper's leader, so the reads after it see
        everything applied before it, even if another server answers them.
        """
        if not progress.unknown:
            return
        self._require_session()
        try:
            await self._session.transact([self._fence])
        except TransactionFailed as error:
            self._raise_if_fenced(error)
        znodes = await self._read(progress.pending, progress.unknown)
        for key in progress.unknown:
            if is_applied(progress.pending[key], znodes, self._session_id):
                del progress.pending[key]
        progress.unknown.clear()

    async def _drop_hopeless(self, progress: _Progress[K]) -> None:
        """Find all groups of refused transactions that can no longer succeed, with one read."""
        if not progress.suspect:
            return
        znodes = await self._read(progress.pending, progress.suspect)
        for key in progress.suspect:
            failure = first_failure(progress.pending[key], znodes)
            if failure is not None:
                progress.fail(key, failure)
        progress.suspect.clear()

    async def _read(self, groups: Mapping[K, Sequence[WriteOp]], keys: Sequence[K]) -> dict[str, ZkNode | None]:
        wanted = list(dict.fromkeys(paths_to_read(_ops(groups, keys))))
        return dict(zip(wanted, await self._session.read_many(wanted), strict=True))

    async def _reconnect(self) -> None:
        if not await self._session.wait_connected(self._reconnect_timeout_ms):
            raise ConnectionLost(
                f"no connection to ZooKeeper for {self._reconnect_timeout_ms} ms; which writes were applied is unknown"
            )
        self._require_session()

    def _require_session(self) -> None:
        if self._session.session_id != self._session_id:
            raise SessionExpired("the session in which this controller was elected has expired")

    def _raise_if_fenced(self, error: TransactionFailed) -> None:
        if error.failed.index == 0:
            raise Fenced(f"{paths.CONTROLLER_EPOCH} is no longer at version {self._fence.version}") from error


def _ops(groups: Mapping[K, Sequence[WriteOp]], keys: Sequence[K]) -> list[WriteOp]:
    return [op for key in keys for op in groups[key]]
