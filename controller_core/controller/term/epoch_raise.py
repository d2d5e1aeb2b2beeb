"""Raising the controller epoch in the middle of a term, so that brokers take, or refuse, what was sent under another one.

There are three reasons: copies of requests must come too late (`sending.late_copies`), partition states were written under
later epochs than `/controller_epoch` says, or a broker refuses the epoch as stale (`term.controller_epochs`).

The role, the session and everything that is known stay as they are. Every write checks the version of `/controller_epoch`,
which a raise changes. So a raise fails if somebody else has taken the role, the next controller finds the later epoch, and
nobody uses one twice. If the connection is lost, it is unknown whether the raise was applied, and the term ends; the next
one has a later epoch too.
"""

import structlog

from controller_core.controller.term.controller_epochs import epoch_above
from controller_core.controller.term.term import Term
from controller_core.model.ids import ControllerEpoch
from controller_core.zk import codecs

log = structlog.get_logger()


async def on_epoch_outdated(term: Term, outdated: ControllerEpoch) -> None:
    """Raises the epoch if it is still the outdated one."""
    if term.identity.epoch > outdated:
        return
    await raise_epoch(
        term, ControllerEpoch(outdated + 1), reason="a copy of a request may be on its way to a broker still"
    )
    await term.journal.begin_term()


async def rise_above_states(term: Term) -> None:
    """Raises the epoch above those of all partition states, before anything is sent or written under it.

    `/controller_epoch` was deleted or restored from an older copy if there is a state of a later epoch."""
    epoch = epoch_above(term.identity.epoch, {state.controller_epoch for state in term.state.states.values()})
    if epoch > term.identity.epoch:
        await raise_epoch(term, epoch, reason="partition states were written under later epochs")


async def raise_epoch(term: Term, epoch: ControllerEpoch, *, reason: str) -> None:
    """Raises the epoch in ZooKeeper, for writes, and for the streams to brokers. The caller begins the journal's next term.

    Raises `Fenced` if somebody else wrote `/controller_epoch`, and if it is unknown whether this write was applied."""
    await term.writer.raise_fence(codecs.encode_controller_epoch(epoch))
    log.warning("controller epoch raised", controller_epoch=epoch, former=term.identity.epoch, reason=reason)
    term.identity.epoch = epoch
    term.channels.raise_epoch(epoch)
