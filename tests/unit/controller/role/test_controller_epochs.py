"""Controller epochs are chosen above all that may have been used, and raised in bounded steps when brokers refuse one."""

import pytest

from controller_core.controller.term.controller_epochs import (
    HIGHEST_EPOCH,
    STEPS,
    find_epoch_above,
    find_epoch_after_refusal,
)
from controller_core.model.ids import ControllerEpoch


@pytest.mark.parametrize(
    ("current", "used", "chosen"),
    [
        (7, [], 7),
        (7, [3, 6], 7),
        (7, [7], 8),
        (7, [3, 50, 12], 51),
        (7, [HIGHEST_EPOCH - 1], HIGHEST_EPOCH),
        (7, [HIGHEST_EPOCH, 2**31 - 1, 9], 10),
    ],
)
def test_an_epoch_is_kept_if_it_is_larger_than_all_that_were_used(current: int, used: list[int], chosen: int) -> None:
    assert find_epoch_above(ControllerEpoch(current), map(ControllerEpoch, used)) == chosen


def test_refused_epochs_are_raised_in_growing_steps_and_only_so_often() -> None:
    refused, raised = ControllerEpoch(4), []
    for raises in range(len(STEPS)):
        epoch = find_epoch_after_refusal(refused, raises)
        assert epoch is not None
        raised.append(epoch - refused)
        refused = epoch
    assert raised == sorted(set(raised))
    assert find_epoch_after_refusal(refused, len(STEPS)) is None


def test_no_raise_uses_up_the_numbers_that_the_protocol_has() -> None:
    assert find_epoch_after_refusal(HIGHEST_EPOCH, 0) is None
    assert find_epoch_after_refusal(ControllerEpoch(HIGHEST_EPOCH - 1), 0) == HIGHEST_EPOCH
