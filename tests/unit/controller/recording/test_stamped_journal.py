"""Records have the time of the day and the machine's uptime of one moment."""

from pathlib import Path

import pytest

from controller_core.controller.loop.clock import SystemClock, identify_boot
from controller_core.controller.recording.stamped_journal import StampedJournal
from controller_core.journal.batches import NoJournal, Uptime
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.recorder.metadata_log.log_clock import LogClock
from simulation.virtual_time import START_MS, VirtualClock


class InterruptedClock(VirtualClock):
    """The process stands still for a second at some of the reads of the time of the day."""

    def __init__(self, interruptions: int) -> None:
        super().__init__()
        self.interruptions = interruptions

    def now_ms(self) -> int:
        if self.interruptions:
            self.interruptions -= 1
            self._elapsed_ms += 1000
        return super().now_ms()


def read_times(clock: VirtualClock | LogClock) -> tuple[int, Uptime | None]:
    stamped = StampedJournal(journal=NoJournal(), clock=clock, snapshot_interval_ms=1)
    context = stamped.make_context(
        cluster_id=None, controller_id=BrokerId(1), controller_epoch=ControllerEpoch(1), cause="test", event=1
    )
    return context.event_time_us, context.uptime


def test_both_are_read_again_if_the_process_was_stopped_between_them() -> None:
    now_us, uptime = read_times(InterruptedClock(2))
    assert uptime is not None
    assert (now_us, uptime.us) == (START_MS * 1000 + 2_000_000, 2_000_000)


def test_a_process_that_is_always_stopped_still_records() -> None:
    now_us, uptime = read_times(InterruptedClock(99))
    assert uptime is not None
    assert (now_us, uptime.us) == (START_MS * 1000 + 3_000_000, 2_000_000)


def test_a_log_that_several_machines_wrote_has_no_uptime() -> None:
    assert read_times(LogClock(SystemClock()))[1] is None


def test_the_uptime_of_a_machine_rises_and_has_one_name() -> None:
    first, second = SystemClock().uptime(), SystemClock().uptime()
    assert first.boot == second.boot == identify_boot()
    assert first.us <= second.us


def test_another_start_of_the_machine_has_another_name(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}").write_text(f"boot {number}")
    names = [identify_boot(tmp_path / f"{number}") for number in (1, 2)]
    assert names[0] != names[1]
    assert all(len(name) == 8 and int(name, 16) >= 0 for name in names)


@pytest.mark.parametrize("name", ["missing", ""])
def test_without_the_systems_word_the_process_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    assert identify_boot(tmp_path / name) == identify_boot(tmp_path / name) != identify_boot()
