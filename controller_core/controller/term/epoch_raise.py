"""The controller epoch rises in the middle of a term, so that brokers refuse what was sent before.

`sending.late_copies` says when that is needed. The role, the session and all that is known stay as they
are. Every write checks the version of `/controller_epoch`, which this one changes, so the next controller finds the later
epoch and nobody ever uses one twice. Where it is unknown whether the write was applied, the term ends as if somebody else
had raised it; the next one has a later epoch too.
"""

import structlog

from controller_core.controller.term.term import Term
from controller_core.model.ids import ControllerEpoch
from controller_core.zk import codecs

log = structlog.get_logger()


async def on_epoch_outdated(term: Term, outdated: ControllerEpoch) -> None:
    """Raises the epoch where it is still the outdated one. The journal begins anew under it, as for another term."""
    if term.identity.epoch > outdated:
        return
    epoch = ControllerEpoch(outdated + 1)
    await term.writer.raise_fence(codecs.encode_controller_epoch(epoch))
    log.warning(
        "controller epoch raised: a copy of a request may be on its way to a broker still", controller_epoch=epoch
    )
    term.identity.epoch = epoch
    await term.journal.begin_term()
    term.channels.raise_epoch(epoch)
