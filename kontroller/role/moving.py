"""Asks for another holder of the role, waits until it is that one, and says how long the cluster had none.

The request is made on the condition that nobody took the role since it was looked at. One to a process ends with this
command. One to Kafka's brokers stays, as it is what keeps ours from taking the role back; where they do not take it in time
it is taken back. A broker that is faster in between is no harm: whoever was asked takes the role from it.
"""

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
    """The role is not where it was to be; the message says who has it and what to look at. Nothing is asked any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The role is where it was to be."""

    holder: BrokerId
    epoch: int
    gap_s: float
    """From when the former holder was last seen in the role until the new one was seen to lead."""
    detours: int
    """How many brokers had it in between."""


@dataclass(slots=True)
class _Watch:
    """What was seen on the way. Seconds are those of `time.monotonic`."""

    before: RolePicture
    held_until_s: float
    detours: set[int] = field(default_factory=set)

    def saw(self, picture: RolePicture) -> None:
        if _czxid(picture) == _czxid(self.before) and picture.controller is not None:
            self.held_until_s = time.monotonic()
        elif picture.controller is not None and picture.kind is Holder.KAFKA_BROKER:
            self.detours.add(picture.controller.czxid)


async def move(
    zk: ZkSession,
    before: RolePicture,
    target: BrokerId | None,
    deadline_s: float,
    say: Callable[[str], None] = lambda _: None,
) -> Moved:
    """Gives the role to a process of ours, or, for None, to Kafka's brokers. Raises `NotMoved` and `ZkError`."""
    await _ask(zk, before, target)
    watch = _Watch(before=before, held_until_s=time.monotonic())
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                with suppress(ConnectionLost):
                    picture = await look(zk)
                    detours = len(watch.detours)
                    watch.saw(picture)
                    if (
                        picture.has(target)
                        and picture.is_led
                        and (before.has(target) or _czxid(picture) != _czxid(before))
                    ):
                        return _moved(picture, watch, is_brokers=target is None)
                    if target is not None and len(watch.detours) > detours:
                        say(f"{picture.described} first: it was faster, and is asked to give it back")
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        await _withdraw(zk, before.request)
        raise NotMoved(await _why_not(zk, target, deadline_s)) from error


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
        raise NotMoved("somebody else took the role, or asked for it, since it was looked at: look again") from error


async def _withdraw(zk: ZkSession, former: RequestedRole | None) -> None:
    """Asks for nothing any more, or for what was asked for before."""
    restored = [make_brokers_request()] if former is not None and former.holder is None else []
    if await zk.wait_connected(_WITHDRAW_MS):
        with suppress(TransactionFailed):  # used up in this moment
            await zk.transact([Delete(path=paths.ROLE_REQUEST), *restored])


async def _why_not(zk: ZkSession, target: BrokerId | None, deadline_s: float) -> str:
    picture = await look(zk)
    wanted = "no broker" if target is None else f"process {target} did not"
    process = picture.processes.get(target) if target is not None else None
    reason = f" ({process.hindrance})" if process is not None and process.hindrance else ""
    verb = "took" if target is None else "take"
    return (
        f"{wanted} {verb} the role in {deadline_s:g} s{reason}, and is asked no more; {picture.described}: see its log"
    )


def _moved(picture: RolePicture, watch: _Watch, *, is_brokers: bool) -> Moved:
    assert picture.holder is not None
    assert picture.controller is not None
    return Moved(
        holder=picture.holder,
        epoch=codecs.decode_controller_epoch(picture.epoch_node.data),
        gap_s=time.monotonic() - watch.held_until_s,
        detours=len(watch.detours - ({picture.controller.czxid} if is_brokers else set())),
    )


def _czxid(picture: RolePicture) -> int | None:
    return picture.controller.czxid if picture.controller is not None else None
