"""The choice of controller epochs that brokers accept: above every epoch that may have been used before.

A broker refuses requests under a smaller controller epoch than the largest that it has seen. `/controller_epoch` has
the last epoch, unless somebody deleted the znode or restored an older copy. The partition states keep the epochs under
which they were written. Epochs that left no trace in ZooKeeper are known only to brokers, which do not report them. So
the controller raises its epoch in growing steps until they accept it.
"""

from collections.abc import Iterable
from typing import Final

from controller_core.model.ids import ControllerEpoch

HIGHEST_EPOCH: Final = ControllerEpoch((1 << 31) - (1 << 24))
"""No raise goes beyond this epoch, so that raises never use up the numbers of the type, int32."""
STEPS: Final = (1, 16, 256, 4096, 65_536, 1_048_576)
"""The steps of the raises after refusals, beyond the refused epoch. A term makes no more raises than these."""


def find_epoch_above(current: ControllerEpoch, used: Iterable[ControllerEpoch]) -> ControllerEpoch:
    """Return the current epoch if it is larger than all that were used, otherwise the first one that is.

    Used epochs above `HIGHEST_EPOCH` are ignored: a znode that names one was not written by a controller."""
    largest = max((epoch for epoch in used if epoch < HIGHEST_EPOCH), default=None)
    return current if largest is None or largest < current else ControllerEpoch(largest + 1)


def find_epoch_after_refusal(refused: ControllerEpoch, raises: int) -> ControllerEpoch | None:
    """Return the epoch to try after a broker refused one as stale; None if the controller must not raise it further.

    `raises` is the number of raises that this term has already made for such refusals.
    """
    if raises >= len(STEPS) or refused + STEPS[raises] > HIGHEST_EPOCH:
        return None
    return ControllerEpoch(refused + STEPS[raises])
