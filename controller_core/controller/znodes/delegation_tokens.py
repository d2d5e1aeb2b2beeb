"""Expiry of delegation tokens: they are deleted, and brokers notified, so that they forget them.

Clients create and renew tokens at brokers; only the controller expires them (Kafka's `DelegationTokenManager`). A token
that is deleted too early locks out its owner, and a clock may be wrong: ours, or that of ZooKeeper's leader. So both
must have passed the end, as for removed replicas. The deletion is conditional on the version that was read, so a token
that is renewed in between stays.
"""

from collections.abc import Mapping
from typing import Final

import structlog

from controller_core.controller.loop.events import TokensDue
from controller_core.controller.loop.slices import slice_up
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Remembers, Writes
from controller_core.controller.znodes import subtrees
from controller_core.controller.znodes.config_writes import ensure_paths
from controller_core.zk import paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.codecs.json_fields import INT64_MAX, integer, json_object
from controller_core.zk.session import Create, CreateMode, Delete, NotEmpty, SetData, WriteOp, ZkNode

log = structlog.get_logger()

FIRST_LOOK_AFTER_MS: Final = 5_000
_READ_AT_ONCE: Final = 1_000


def start_expiring(term: Remembers) -> None:
    """Start the timer of the first check, if the cluster has tokens."""
    if term.settings.delegation_token_check_interval_ms is not None:
        term.enqueue_later(TokensDue(), FIRST_LOOK_AFTER_MS)


async def on_tokens_due(term: Writes) -> None:
    """Delete the expired tokens, and start the timer again."""
    if (interval_ms := term.settings.delegation_token_check_interval_ms) is not None:
        term.enqueue_later(TokensDue(), interval_ms)
        over = await _find_expired(term, term.clock.now_ms())
        if over:
            await _delete(term, await _confirm_expired(term, over))


def read_end_ms(path: str, data: bytes) -> int:
    """Return the end of a token. Renewals do not extend it beyond its maximum lifetime. Raises `MalformedZnode`."""
    json = json_object(path, data)
    return min(integer(path, json, name, at_most=INT64_MAX) for name in ("maxTimestamp", "expiryTimestamp"))


async def _find_expired(term: Reads, now_ms: int) -> dict[str, tuple[ZkNode, int]]:
    """Return the expired tokens by their ids, with the znodes as read and their ends."""
    (names,) = await term.zk.children_many([paths.DELEGATION_TOKENS])
    term.state.unusable.keep_among(paths.DELEGATION_TOKENS, names or ())
    over = {}
    for first in range(0, len(names or ()), _READ_AT_ONCE):
        some = (names or ())[first : first + _READ_AT_ONCE]
        nodes = await term.zk.read_many(list(map(paths.delegation_token, some)))
        async for token_id, node in slice_up(zip(some, nodes, strict=True)):
            if node is not None and (end_ms := _read(term.state, token_id, node)) is not None and end_ms < now_ms:
                over[token_id] = node, end_ms
    return over


def _read(state: ReadOnlyState, token_id: str, node: ZkNode) -> int | None:
    path = paths.delegation_token(token_id)
    try:
        end_ms = read_end_ms(path, node.data)
    except MalformedZnode as error:
        state.unusable.report(path, "unreadable delegation token, it is not expired", error)
        return None
    state.unusable.clear(path)
    return end_ms


async def _confirm_expired(term: Writes, over: Mapping[str, tuple[ZkNode, int]]) -> dict[str, ZkNode]:
    """Return those that are also expired by the clock of ZooKeeper's leader, which stamps writes with its time."""
    await term.writer.write({"now": [SetData(path=paths.DELEGATION_TOKENS, data=b"")]})
    (node,) = await term.zk.read_many([paths.DELEGATION_TOKENS])
    now_ms = node.mtime_ms if node else 0
    return {token_id: read for token_id, (read, end_ms) in over.items() if end_ms < now_ms}


async def _delete(term: Writes, over: Mapping[str, ZkNode]) -> None:
    await ensure_paths(term, [paths.DELEGATION_TOKEN_CHANGES] if over else [])
    writes: dict[str, list[WriteOp]] = {
        token_id: [
            Delete(path=paths.delegation_token(token_id), version=node.version),
            Create(
                path=paths.DELEGATION_TOKEN_CHANGE_PREFIX,
                data=token_id.encode(),
                mode=CreateMode.PERSISTENT_SEQUENTIAL,
            ),
        ]
        for token_id, node in over.items()
    }
    failed = (await term.writer.write(writes)).failed
    for token_id in (token_id for token_id, error in failed.items() if isinstance(error, NotEmpty)):
        await subtrees.delete_below(term, paths.delegation_token(token_id))  # the next check deletes the token
    if expired := [token_id for token_id in writes if token_id not in failed]:
        log.info("delegation tokens expired", tokens=len(expired), first=expired[0])
