"""The commands as a user runs them: in their own process, with pipes or a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.conformance.clusters import ConformanceCluster

PROJECT = Path(__file__).parents[4]
_DEADLINE_S = 60.0
_AGAIN_S = 10.0
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The output and the exit code of a command."""

    out: str
    err: str
    code: int

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Kontroller:
    """The `kontroller` command with bootstrap servers."""

    bootstrap: str
    state: str = os.devnull
    """The folder of the shell's history."""
    identity_file: Path | None = None
    """The credentials of the user; None for an anonymous one."""

    def run(self, *arguments: str, stdin: str = "") -> Ended:
        done = subprocess.run(
            _command(*arguments),
            env=self._env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )
        return Ended(out=done.stdout, err=done.stderr, code=done.returncode)

    def start_at_terminal(self, *arguments: str) -> "Terminal":
        """Start a command at a terminal, and return it while it runs."""
        return Terminal(_command(*arguments), self._env)

    @property
    def _env(self) -> dict[str, str]:
        path = f"{PROJECT}:{PROJECT / 'operator'}"
        return {
            **os.environ,
            "PYTHONPATH": path,
            "KONTROLLER_BOOTSTRAP_SERVER": self.bootstrap,
            "TERM": "xterm",
            "COLUMNS": "200",
            "XDG_STATE_HOME": self.state,
            "PROMPT_TOOLKIT_NO_CPR": "1",
            **({"KONTROLLER_COMMAND_CONFIG": str(self.identity_file)} if self.identity_file else {}),
        }


def kontroller_of(cluster: ConformanceCluster, bootstrap: str, *, state: str = os.devnull) -> Kontroller:
    """Return the command as a client of the cluster runs it."""
    return Kontroller(bootstrap, state, cluster.identity_file)


class Terminal:
    """A command in a pseudo terminal."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        # In a shell's background, tests and their children ignore Ctrl-C unless the signal is reset.
        heeding = ["env", "--default-signal=INT", *command]
        self.process = subprocess.Popen(
            heeding, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.said = ""

    def wait_for(self, text: str) -> str:
        """Wait until a text is on the screen; return all output so far."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while text not in self.said:
            if not self._read(deadline_s):
                raise AssertionError(f"{text!r} did not come; it said {self.said!r}")
        return self.said

    def wait_for_prompt(self) -> str:
        """Wait for the shell's prompt: a line that is typed earlier would be input of the running command."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while not self.said.rstrip().endswith("]>"):
            if not self._read(deadline_s):
                raise AssertionError(f"there is no prompt; it said {self.said!r}")
        return self.said

    def type(self, text: str) -> None:
        self.said = ""
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C while a command runs."""
        self.process.send_signal(signal.SIGINT)

    def press_control_d(self) -> None:
        """Press Ctrl-D, the end of the input."""
        os.write(self._master, b"\x04")

    def end(self, by: Callable[[], object] | None = None) -> Ended:
        """Wait until the command has ended.

        `by`: the key that ends it. The key is pressed again if nothing happens: a key between the question on the
        screen and the start of reading is lost, to Python's readline and to a terminal that changes its mode.
        """
        deadline_s = time.monotonic() + _DEADLINE_S
        while by is not None and self.process.poll() is None and time.monotonic() < deadline_s:
            by()
            again_s = time.monotonic() + _AGAIN_S
            while self._read(again_s):
                pass
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        # A busy machine takes long, but a command that shows its progress is never silent for long.
        while self._read(time.monotonic() + _DEADLINE_S):
            pass
        code = self.process.wait(_DEADLINE_S)
        os.close(self._master)
        return Ended(out=self.said, err="", code=code)

    def _read(self, deadline_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline_s - time.monotonic()))
        if not ready:
            return False
        try:
            read = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.said += _ANSI.sub("", read.decode(errors="replace")).replace("\r\n", "\n")
        return bool(read)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kontroller", *arguments]
