"""Raises of the controller epoch in the middle of a term, so that brokers accept or refuse earlier requests.

There are three reasons: copies of requests must be refused (`sending.late_copies`), partition states were written under
later epochs than `/controller_epoch`, or a broker refuses the epoch as stale (`term.controller_epochs`).

The role, the session and the state stay as they are. Every write checks the version of `/controller_epoch`, which a
raise changes. So a raise fails if another process has taken the role, the next controller finds the later epoch, and no
epoch is used twice. If the connection is lost, it is unknown if the raise was applied, and the term ends. The next term
has a later epoch too.
"""

import structlog

from controller_core.controller.term.controller_epochs import find_epoch_above
from controller_core.controller.term.term import Term
from controller_core.model.ids import ControllerEpoch
from controller_core.zk import codecs

log = structlog.get_logger()


async def on_epoch_outdated(term: Term, outdated: ControllerEpoch) -> None:
    """Raise the epoch if it is still the outdated one."""
    if term.identity.epoch > outdated:
        return
    await raise_epoch(term, ControllerEpoch(outdated + 1), reason="a copy of a request may still reach a broker")
    await term.journal.begin_term()


async def rise_above_states(term: Term) -> None:
    """Raise the epoch above those of all partition states, before anything is sent or written under it.

    A state with a later epoch means that `/controller_epoch` was deleted, or restored from an older copy.
    """
    epoch = find_epoch_above(term.identity.epoch, {state.controller_epoch for state in term.state.states.values()})
    if epoch > term.identity.epoch:
        await raise_epoch(term, epoch, reason="partition states were written under later epochs")


async def raise_epoch(term: Term, epoch: ControllerEpoch, *, reason: str) -> None:
    """Raise the epoch in ZooKeeper, for writes, and for streams to brokers. The caller begins the journal's next term.

    Raises `Fenced` if somebody else wrote `/controller_epoch`, or if it is unknown whether this write was applied.
    """
    await term.writer.raise_fence(codecs.encode_controller_epoch(epoch))
    log.warning("controller epoch raised", controller_epoch=epoch, former=term.identity.epoch, reason=reason)
    term.identity.epoch = epoch
    term.channels.raise_epoch(epoch)
