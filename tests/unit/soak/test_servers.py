"""The servers of the soak: the actions that each state allows, and none dies unnoticed. The servers are `sleep`s."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.running.processes import ManagedProcess, StartError, wait_until
from devcluster.running.servers import Server
from devcluster.soak.servers import Impossible, SoakServer, Wanted


class Sleeper(Server):
    """A process that does nothing for long."""

    def __init__(self, log_path: Path) -> None:
        super().__init__()
        self.process = ManagedProcess("sleeper", ["sleep", "600"], log_path=log_path, ready=lambda: True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SoakServer]:
    with Sleeper(tmp_path / "log") as sleeper:
        yield SoakServer("sleeper", sleeper)


def die(server: SoakServer) -> None:
    os.kill(server.server.process.pid, signal.SIGKILL)
    wait_until(lambda: not server.server.process.is_running, "it is dead")


def test_a_server_ends_and_starts_as_asked(server: SoakServer) -> None:
    for end in (server.stop, server.kill):
        end()
        assert not server.server.process.is_running
        server.start()
        assert server.server.process.is_running
    assert server.deaths == []


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (SoakServer.kill, SoakServer.stop),
        (SoakServer.kill, SoakServer.pause),
        (SoakServer.pause, SoakServer.kill),
        (SoakServer.pause, SoakServer.start),
        (SoakServer.kill, SoakServer.resume),
    ],
)
def test_what_its_state_does_not_allow_is_refused(
    server: SoakServer, first: Callable[[SoakServer], None], then: Callable[[SoakServer], None]
) -> None:
    first(server)
    with pytest.raises(Impossible, match=r"sleeper is (down|paused)"):
        then(server)


@pytest.mark.parametrize("away", [SoakServer.stop, SoakServer.kill, SoakServer.pause])
def test_healing_brings_back_what_was_taken_away(server: SoakServer, away: Callable[[SoakServer], None]) -> None:
    away(server)
    server.heal()
    server.stop()
    assert server.deaths == []


def test_a_server_that_ended_by_itself_is_reported_and_healed(server: SoakServer) -> None:
    die(server)
    server.heal()
    assert server.server.process.is_running
    assert server.deaths == [f"sleeper ended by itself, see {server.server.process.log_path}"]


def test_a_server_that_ended_by_itself_counts_as_down(server: SoakServer) -> None:
    die(server)
    with pytest.raises(Impossible, match="sleeper is down"):
        server.kill()
    assert len(server.deaths) == 1


def test_operations_on_one_server_happen_in_their_order(server: SoakServer) -> None:
    order = [SoakServer.kill, SoakServer.start, SoakServer.pause, SoakServer.resume, SoakServer.stop]
    for outcome in [server.submit(act) for act in order]:
        outcome.result(timeout=30)
    assert not server.server.process.is_running
    server.close()


EXPIRED = "kafka.zookeeper.ZooKeeperClientExpiredException: Session expired\n\tat kafka\n"


class Reluctant(Sleeper):
    """A server whose next start ends with these last words in its log, if there are any."""

    last_words = ""

    def start(self) -> None:
        if words := self.last_words:
            self.last_words = ""
            with self.process.log_path.open("a") as log:
                log.write(words)
            raise StartError("ended with exit status 1")
        super().start()


def starts_after(folder: Path, last_words: str) -> bool:
    """Return True if a stopped server starts, although its first try ends with these last words."""
    with Reluctant(folder / "log") as reluctant:
        reluctant.kill()
        reluctant.last_words = last_words
        SoakServer("reluctant", reluctant, Wanted.DOWN).start()
        return reluctant.process.is_running


def test_a_broker_whose_session_expires_while_it_starts_is_started_again(tmp_path: Path) -> None:
    assert starts_after(tmp_path, EXPIRED)


def test_another_failure_to_start_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StartError):
        starts_after(tmp_path, "no such file\n")


def test_what_an_earlier_life_said_excuses_no_failure(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(EXPIRED)
    with pytest.raises(StartError):
        starts_after(tmp_path, "no such file\n")
