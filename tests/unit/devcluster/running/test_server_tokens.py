"""Servers take tokens when they start, and give them back when they end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.running import servers
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server, take_tokens_of
from devcluster.running.tokens import Tokens

_TOTAL = 4


class Sleeper(Server):
    """A process that does nothing for long, and costs two tokens."""

    tokens = 2

    def __init__(self, log_path: Path) -> None:
        super().__init__()
        self.process = ManagedProcess("sleeper", ["sleep", "600"], log_path=log_path, ready=lambda: True)

    def start(self) -> None:
        self.take_tokens()
        super().start()


class NoRoomError(Exception):
    """The error of a run that would have to wait."""


@pytest.fixture
def has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], bool]:
    """Tells if another run would get so many tokens at once; servers take those of a folder of the test's own."""
    own, other = Tokens(tmp_path / "tokens", _TOTAL), Tokens(tmp_path / "tokens", _TOTAL)
    monkeypatch.setattr(servers, "machine_tokens", lambda: own)

    def refuse(text: str) -> None:
        raise NoRoomError(text)

    other.wait_for_others(refuse)

    def ask(count: int) -> bool:
        try:
            other.take(count).give_back()
        except NoRoomError:
            return False
        return True

    return ask


def test_a_server_holds_its_tokens_over_a_restart_until_it_is_closed(
    tmp_path: Path, has_room: Callable[[int], bool]
) -> None:
    with Sleeper(tmp_path / "log") as server:
        assert has_room(2)
        assert not has_room(3)
        server.kill()
        assert not has_room(3)
        server.start()
        assert has_room(2)
    assert has_room(_TOTAL)


def test_servers_that_start_together_take_what_is_missing_and_no_more(
    tmp_path: Path, has_room: Callable[[int], bool]
) -> None:
    first, second = Sleeper(tmp_path / "first"), Sleeper(tmp_path / "second")
    first.take_tokens()
    take_tokens_of([first, second])
    assert first.missing_tokens == second.missing_tokens == 0
    assert not has_room(1)
    second.close()
    assert has_room(2)
    first.close()
    assert has_room(_TOTAL)
