"""Commands at a terminal, without a cluster: interrupted questions, and the shell's history."""

from pathlib import Path

import pytest

from tests.real.conformance.client.commands import Kontroller

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

CONTROL_D = "\x04"
UP = "\x1b[A"
CONFIRMED = {
    "a deletion": ("topics", "delete", "--topic", "t"),
    "an unclean election": ("elect", "unclean", "--topic", "t", "--partition", "0"),
    "a deletion of features": ("features", "disable", "--features", "f"),
}


@pytest.fixture
def kontroller(unused_tcp_port: int, tmp_path: Path) -> Kontroller:
    """The command, with a server that does not answer."""
    return Kontroller(f"127.0.0.1:{unused_tcp_port}", state=str(tmp_path))


@pytest.mark.parametrize("arguments", CONFIRMED.values(), ids=CONFIRMED)
def test_ctrl_c_at_a_question_ends_the_command_at_once(kontroller: Kontroller, arguments: tuple[str, ...]) -> None:
    terminal = kontroller.start_at_terminal(*arguments, "--timeout-ms", "100")
    terminal.wait_for("]? ")
    ended = terminal.end(terminal.interrupt)
    assert ended.code == 130
    assert "interrupted: nothing is changed" in ended.out
    assert "did not happen within" not in ended.out


@pytest.mark.parametrize("arguments", CONFIRMED.values(), ids=CONFIRMED)
def test_the_end_of_the_input_is_no_answer(kontroller: Kontroller, arguments: tuple[str, ...]) -> None:
    terminal = kontroller.start_at_terminal(*arguments, "--timeout-ms", "100")
    terminal.wait_for("]? ")
    terminal.type(CONTROL_D)
    ended = terminal.end()
    assert ended.code == 2
    assert "there is no terminal to confirm this: give --yes" in ended.out


def test_lines_of_an_earlier_shell_are_found_again(kontroller: Kontroller, tmp_path: Path) -> None:
    shell = kontroller.start_at_terminal("shell")
    shell.wait_for_prompt()
    shell.type("help elect unclean\n")
    shell.wait_for("Elects a live replica as the leader of partitions without one.")
    shell.wait_for_prompt()
    shell.type("exit\n")
    assert shell.end().code == 0
    history = tmp_path / "kontroller" / "shell_history"
    assert history.stat().st_mode & 0o077 == 0, "what somebody has typed is nobody else's"
    shell = kontroller.start_at_terminal("shell")
    shell.wait_for_prompt()
    shell.type(f"{UP}{UP}\n")
    shell.wait_for("Elects a live replica as the leader of partitions without one.")
    shell.wait_for_prompt()
    shell.type(CONTROL_D)
    assert shell.end().code == 0


def test_a_question_in_the_shell_is_broken_off_and_the_shell_goes_on(kontroller: Kontroller) -> None:
    shell = kontroller.start_at_terminal("shell")
    shell.wait_for_prompt()
    shell.type("topics delete --topic t\n")
    shell.wait_for("[y/N]? ")
    shell.interrupt()
    shell.wait_for("interrupted: nothing is changed")
    shell.wait_for_prompt()
    shell.type("exit\n")
    assert shell.end().code == 0
