"""The finalized features of the cluster in `/feature` (KIP-584): set up by a new controller, then watched.

A znode that cannot be understood stays as it is, because its writer may have had a reason. The cluster is then served
without features, no level can be changed, and every check of the znode logs the remedy. The same holds for a deleted
znode. A new one would begin at version 0, and a broker that never noticed the deletion stops itself when it sees a
lower version than it knows. As in Kafka, only the next controller creates one.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog

from controller_core.controller.loop.events import FeaturesChanged
from controller_core.controller.operations import brokers
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.term.term import Term
from controller_core.model.features import FinalizedFeatures
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import FeatureZnode, MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, put
from controller_core.zk.session import AccessRefused, SetData, TransactionFailed, WriteOp, ZkNode, ZkVersion

log = structlog.get_logger()

REPAIR: Final = (
    f"repair the data of {paths.FEATURE}, or delete the znode and restart the controller: "
    "a new controller makes one without features"
)
_NOT_WRITTEN: Final = (AccessRefused, Contended, TransactionFailed)
"""Errors that leave `/feature` and the controller as they were. Access may be refused to this znode alone."""


class FeaturesNotWrittenError(Exception):
    """A write of `/feature` was refused.

    The znode is unchanged, or has another's write. Retry after reading it again.
    """


async def set_up(term: Writes) -> None:
    """Load `/feature`. Create it if it is absent."""
    await _load(term, makes_it=True)


async def load(term: Writes) -> None:
    """Read `/feature`, watched. Rewrite it if it is disabled or has an old version."""
    await _load(term, makes_it=False)


async def _load(term: Writes, *, makes_it: bool) -> None:
    term.state.set_finalized_features(await _read_or_repair(term, makes_it=makes_it))


async def _read_or_repair(term: Writes, *, makes_it: bool) -> FinalizedFeatures | None:
    def sound(node: ZkNode | None) -> list[WriteOp]:
        if node is None and not makes_it:
            return []
        wanted = _find_wanted(node)
        return [] if node is not None and codecs.decode_features(node.data) == wanted else [_put(node, wanted)]

    try:
        settled = await compare_and_set(partial(_read, term), sound, term.writer.transact)
    except MalformedZnode as error:
        term.state.unusable.report(
            paths.FEATURE, "unreadable finalized features: no feature can be changed", error, to_do=REPAIR
        )
        return None
    except _NOT_WRITTEN as error:
        log.error("cannot rewrite finalized features: no feature can be changed", error=str(error))
        return None
    node, wanted = settled.found, _find_wanted(settled.found)
    if node is None and not settled.is_written:
        log.error("no finalized features: no feature can be changed", path=paths.FEATURE, to_do=REPAIR)
        return None
    term.state.unusable.clear(paths.FEATURE)
    if node is not None and (dropped := codecs.decode_features(node.data).features) != wanted.features:
        log.warning("features of a disabled znode are dropped", path=paths.FEATURE, features=dict(dropped))
    return FinalizedFeatures(features=wanted.features, epoch=0 if node is None else node.version + settled.is_written)


def _find_wanted(node: ZkNode | None) -> FeatureZnode:
    """Return the content that the znode should have. Raises `MalformedZnode`."""
    found = codecs.decode_features(node.data) if node is not None else FeatureZnode()
    return FeatureZnode(features=found.features if found.is_enabled else {})


async def _read(term: Reads) -> ZkNode | None:
    return await term.watched.read_node(paths.FEATURE, FeaturesChanged())


def _put(node: ZkNode | None, znode: FeatureZnode) -> WriteOp:
    return put(paths.FEATURE, node, codecs.encode_features(znode))


async def on_features_changed(term: Term) -> None:
    """Load the new content of `/feature`. Check again the brokers that the former levels kept out."""
    known = term.state.finalized_features
    await load(term)
    present = term.state.finalized_features
    if present != known:
        log.info("finalized features changed", **_describe(present))
    await brokers.on_brokers_changed(term)


async def finalize(term: Writes, judge: Callable[[FinalizedFeatures], Mapping[str, int]]) -> FinalizedFeatures | None:
    """Write the levels that `judge` returns for the present ones, if they differ.

    If somebody else writes in between, `judge` runs again. Return the features that it judged last; None if `/feature`
    has no readable content. Raises `FeaturesNotWrittenError`.
    """

    async def read() -> FinalizedFeatures | None:
        await load(term)
        return term.state.finalized_features

    def judge_present(present: FinalizedFeatures | None) -> list[WriteOp]:
        if present is None or (levels := judge(present)) == present.features:
            return []
        data = codecs.encode_features(FeatureZnode(features=levels))
        return [SetData(path=paths.FEATURE, data=data, version=ZkVersion(present.epoch))]

    try:
        settled = await compare_and_set(read, judge_present, term.writer.transact)
    except _NOT_WRITTEN as refused:
        raise FeaturesNotWrittenError(str(refused)) from refused
    before = settled.found
    if before is not None and settled.is_written:
        term.state.set_finalized_features(FinalizedFeatures(features=dict(judge(before)), epoch=before.epoch + 1))
        log.info("features finalized", before=dict(before.features), **_describe(term.state.finalized_features))
    return before


def _describe(finalized: FinalizedFeatures | None) -> dict[str, object]:
    return {"features": dict(finalized.features), "epoch": finalized.epoch} if finalized else {"features": None}
