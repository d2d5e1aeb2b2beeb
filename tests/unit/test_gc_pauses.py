"""Python's garbage collection: it never runs while any work asks for quiet, even if other work ends."""

import gc
from collections.abc import Iterator

import pytest

from controller_core import gc_pauses
from controller_core.gc_pauses import gc_paused
from controller_core.wire.listener.workers import Lane, run_in_thread


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The generations that were searched on purpose."""
    searched: list[int] = []
    monkeypatch.setattr(gc, "collect", searched.append)
    return searched


def test_a_pause_within_another_ends_with_the_outer_one() -> None:
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_of_pauses_that_overlap_the_last_ends_them_all() -> None:
    event, message = gc_paused(), gc_paused()
    event.__enter__()
    message.__enter__()
    event.__exit__(None, None, None)
    assert not gc.isenabled()
    message.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_ends_a_pause() -> None:
    with pytest.raises(LookupError), gc_paused():
        raise LookupError
    assert gc.isenabled()


async def test_large_messages_are_worked_on_without_a_search() -> None:
    assert not await run_in_thread(Lane.CLIENTS, gc.isenabled)
    assert gc.isenabled()


def test_pauses_without_a_gap_have_a_search_in_between_now_and_then(
    monkeypatch: pytest.MonkeyPatch, searched: list[int]
) -> None:
    with gc_paused():
        with gc_paused():
            pass
        assert searched == []
        monkeypatch.setattr(gc_pauses, "_LONGEST_PAUSE_S", -1.0)
        with gc_paused():
            pass
        assert searched == [1]
    assert searched == [1]
