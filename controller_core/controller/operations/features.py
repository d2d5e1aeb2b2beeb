"""The finalized features of the cluster, as `/feature` says them (KIP-584): set up by a new controller, then watched.

A znode that cannot be understood is left as it is, because whatever wrote it may mean something by it: the cluster is
served without features then, no level can be changed, and every look at the znode says in the log what to do. So it is
with one that is deleted: the versions of a new znode begin again at 0, and a broker that sees a lower version than it
knows, because it never saw that there was no znode, ends itself. Only the next controller makes one, as with Kafka.
"""

from collections.abc import Mapping
from typing import Final

import structlog

from controller_core.controller.loop.events import FeaturesChanged
from controller_core.controller.operations import brokers
from controller_core.controller.term.term import Term
from controller_core.model.features import FinalizedFeatures
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import FeatureZnode, MalformedZnode
from controller_core.zk.session import (
    AccessRefused,
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkVersion,
)

log = structlog.get_logger()

REPAIR: Final = (
    f"repair the data of {paths.FEATURE}, or delete the znode and restart the controller: "
    "a new controller makes one without features"
)


class FeaturesNotWrittenError(Exception):
    """ZooKeeper refused a write of `/feature`, which is as it was before. Retriable where somebody else wrote it."""


async def set_up(term: Term) -> None:
    """Loads `/feature`, and makes it first where it is absent."""
    await _load(term, makes_it=True)


async def load(term: Term) -> None:
    """Reads `/feature`, watched, and rewrites it where it is disabled or of an old version."""
    await _load(term, makes_it=False)


async def _load(term: Term, *, makes_it: bool) -> None:
    while True:
        node = await term.watched.node(paths.FEATURE, FeaturesChanged())
        if node is None and makes_it:
            makes_it = False
            refused = await _attempt(term, Create(path=paths.FEATURE, data=codecs.encode_features(FeatureZnode())))
            if not isinstance(refused, NodeExists | None):
                log.error("cannot set up finalized features", error=str(refused))
            continue
        if node is None:
            term.state.finalized_features = None
            log.error("no finalized features: no feature can be changed", path=paths.FEATURE, to_do=REPAIR)
            return
        try:
            found = codecs.decode_features(node.data)
        except MalformedZnode as error:
            term.state.finalized_features = None
            term.state.unusable.report(
                paths.FEATURE, "unreadable finalized features: no feature can be changed", error, to_do=REPAIR
            )
            return
        term.state.unusable.clear(paths.FEATURE)
        wanted = FeatureZnode(features=found.features if found.is_enabled else {})
        if found == wanted:
            term.state.finalized_features = FinalizedFeatures(features=found.features, epoch=node.version)
            return
        if found.features and not found.is_enabled:
            log.warning("features of a disabled znode are dropped", path=paths.FEATURE, features=dict(found.features))
        refused = await _write_at(term, node.version, wanted)
        if not isinstance(refused, BadVersion | NoNode | None):
            term.state.finalized_features = None
            log.error("cannot rewrite finalized features: no feature can be changed", error=str(refused))
            return


async def on_features_changed(term: Term) -> None:
    """Takes over what `/feature` says now. Brokers that were kept out by the former levels are looked at again."""
    known = term.state.finalized_features
    await load(term)
    present = term.state.finalized_features
    if present != known:
        log.info("finalized features changed", **_shown(present))
    await brokers.on_brokers_changed(term)


async def finalize(term: Term, validated: FinalizedFeatures, features: Mapping[str, int]) -> None:
    """Writes levels in place of those that they were validated against.

    Raises `FeaturesNotWrittenError` where `/feature` is no longer what was validated, or may not be written."""
    znode = FeatureZnode(features=features)
    refused = await _write_at(term, ZkVersion(validated.epoch), znode)
    if refused is not None:
        raise FeaturesNotWrittenError(str(refused)) from refused
    term.state.finalized_features = FinalizedFeatures(features=dict(features), epoch=validated.epoch + 1)
    log.info("features finalized", before=dict(validated.features), **_shown(term.state.finalized_features))


async def _write_at(term: Term, version: ZkVersion, znode: FeatureZnode) -> TransactionFailed | AccessRefused | None:
    data = codecs.encode_features(znode)
    return await _attempt(term, SetData(path=paths.FEATURE, data=data, version=version))


async def _attempt(term: Term, op: WriteOp) -> TransactionFailed | AccessRefused | None:
    """Why a write was refused; None where it was not."""
    try:
        outcome = await term.writer.write({op.path: [op]})
    except AccessRefused as refused:
        return refused
    return outcome.failed.get(op.path)


def _shown(finalized: FinalizedFeatures | None) -> dict[str, object]:
    return {"features": dict(finalized.features), "epoch": finalized.epoch} if finalized else {"features": None}
