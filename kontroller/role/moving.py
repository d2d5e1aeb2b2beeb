"""Requests another holder of the role, waits until it leads, and measures how long the cluster had no controller.

The request is conditional: nobody may have taken the role since it was inspected. A request to a process ends with this
command. A request to Kafka's brokers stays, because it keeps Kontroller from taking the role back; if no broker takes
the role in time, the request is withdrawn. A faster broker in between does no harm: the requested process takes the
role from it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from controller_core.controller.role.requested_role import RequestedRole, make_brokers_request, make_process_request
from controller_core.controller.role.role_znode import Holder
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import (
    Check,
    Conflict,
    ConnectionLost,
    Create,
    Delete,
    TransactionFailed,
    WriteOp,
    ZkSession,
)
from kontroller.role.picture import RolePicture, look

_POLL_S: Final = 0.02
_WITHDRAW_MS: Final = 5_000


class NotMoved(Exception):
    """The role has not moved. The message says who has it and what to check. The request is withdrawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The result of a move: the requested holder has the role."""

    holder: BrokerId
    epoch: int
    gap_s: float
    """Seconds from the last sight of the former holder in the role to the first sight of the new one leading."""
    detours: int
    """The number of brokers that had the role in between."""


@dataclass(slots=True)
class _Watch:
    """Observations during a move. Seconds are those of `time.monotonic`."""

    before: RolePicture
    held_until_s: float
    detours: set[int] = field(default_factory=set)

    def note(self, picture: RolePicture) -> None:
        if _find_czxid(picture) == _find_czxid(self.before) and picture.controller is not None:
            self.held_until_s = time.monotonic()
        elif picture.controller is not None and picture.kind is Holder.KAFKA_BROKER:
            self.detours.add(picture.controller.czxid)


async def move(
    zk: ZkSession,
    before: RolePicture,
    target: BrokerId | None,
    timeout_s: float,
    say: Callable[[str], None] = lambda _: None,
) -> Moved:
    """Move the role to a Kontroller process, or, for None, to Kafka's brokers. Raises `NotMoved` and `ZkError`."""
    await _ask(zk, before, target)
    watch = _Watch(before=before, held_until_s=time.monotonic())
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                with suppress(ConnectionLost):
                    picture = await look(zk)
                    detours = len(watch.detours)
                    watch.note(picture)
                    # A new czxid of /controller proves that the role was taken after the request.
                    if (
                        picture.has(target)
                        and picture.is_led
                        and (before.has(target) or _find_czxid(picture) != _find_czxid(before))
                    ):
                        return _describe_move(picture, watch, is_brokers=target is None)
                    if target is not None and len(watch.detours) > detours:
                        say(f"{picture.described} for now: it was faster, and is asked to give it back")
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        await _withdraw(zk, before.request)
        raise NotMoved(await _explain_failure(zk, target, timeout_s)) from error


async def _ask(zk: ZkSession, before: RolePicture, target: BrokerId | None) -> None:
    await ensure_znodes(zk, [Create(path=paths.KONTROLLER)], zk.transact)
    ops: list[WriteOp] = [Check(path=paths.CONTROLLER_EPOCH, version=before.epoch_node.version)]
    if before.request is not None:
        ops.append(Delete(path=paths.ROLE_REQUEST, version=before.request.node.version))
    if target is None:
        ops.append(make_brokers_request())
    elif not before.has(target):
        ops.append(make_process_request(target))
    try:
        await zk.transact(ops)
    except Conflict as error:
        raise NotMoved(
            "somebody else took or requested the role since it was inspected: run the command again"
        ) from error


async def _withdraw(zk: ZkSession, former: RequestedRole | None) -> None:
    """Withdraw the request, and restore the former one if it was for Kafka's brokers."""
    restored = [make_brokers_request()] if former is not None and former.holder is None else []
    if await zk.wait_connected(_WITHDRAW_MS):
        with suppress(TransactionFailed):  # the request was served at this moment
            await zk.transact([Delete(path=paths.ROLE_REQUEST), *restored])


async def _explain_failure(zk: ZkSession, target: BrokerId | None, timeout_s: float) -> str:
    picture = await look(zk)
    wanted = "no broker" if target is None else f"process {target} did not"
    process = picture.processes.get(target) if target is not None else None
    reason = f" ({process.hindrance})" if process is not None and process.hindrance else ""
    verb = "took" if target is None else "take"
    return (
        f"{wanted} {verb} the role in {timeout_s:g} s{reason}, and the request is withdrawn; "
        f"{picture.described}: see its log"
    )


def _describe_move(picture: RolePicture, watch: _Watch, *, is_brokers: bool) -> Moved:
    assert picture.holder is not None
    assert picture.controller is not None
    return Moved(
        holder=picture.holder,
        epoch=codecs.decode_controller_epoch(picture.epoch_node.data),
        gap_s=time.monotonic() - watch.held_until_s,
        detours=len(watch.detours - ({picture.controller.czxid} if is_brokers else set())),
    )


def _find_czxid(picture: RolePicture) -> int | None:
    return picture.controller.czxid if picture.controller is not None else None
