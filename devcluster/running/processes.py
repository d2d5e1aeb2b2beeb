"""Processes that end with us: started in a session of their own, watched until ready, stopped or killed on
demand.

Three nets keep a server from outliving its starter. Leaving a server's context ends it; an `atexit` hook ends
what is still running after an error, Ctrl-C or SIGTERM (`ending_on_sigterm`); and the kernel's parent-death
signal ends it when this process is itself killed. That signal follows the *thread* that started the child, so
every start happens on one thread that lives as long as the process.
"""

import atexit
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from devcluster.running.patience import SILENCE_S, Patience, Progress

_TAIL_LINES = 15
_SPAWN_DEADLINE_S = 10.0

_running: set["ManagedProcess"] = set()
_spawn_requests: queue.SimpleQueue[tuple[Callable[[], subprocess.Popen[Any]], Future[subprocess.Popen[Any]]]]
_spawn_requests = queue.SimpleQueue()
_spawner_lock = threading.Lock()
_spawner: threading.Thread | None = None


class StartError(Exception):
    """A process ended, or made no progress any more, before it was ready; the message ends with its log's end."""


class ProcessNotRunningError(Exception):
    """Asked for something that only a running process has."""


class ConditionTimeoutError(Exception):
    """A condition did not hold, and no server made progress any more."""


class ManagedProcess:
    """One server process. `start` may be called again after `stop` or `kill`; the log is appended to.

    `ready` is polled after the start and may raise OSError while the server is not there yet. The server shows progress by
    what it writes to its log and, if it has any, to the files in the folder `writes_to`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log_path: Path,
        ready: Callable[[], bool],
        env: Mapping[str, str] | None = None,
        writes_to: Path | None = None,
        start_silence_s: float = SILENCE_S,
        stop_deadline_s: float = 30.0,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self._command = list(command)
        self._ready = ready
        self._env = {**os.environ, **(env or {})}
        self._writes_to = writes_to
        self._start_silence_s = start_silence_s
        self._stop_deadline_s = stop_deadline_s
        self._process: subprocess.Popen[bytes] | None = None

    def with_command(self, command: Sequence[str]) -> "ManagedProcess":
        """The same server by another command line, not started yet."""
        return ManagedProcess(
            self.name,
            command,
            log_path=self.log_path,
            ready=self._ready,
            env=self._env,
            writes_to=self._writes_to,
            start_silence_s=self._start_silence_s,
            stop_deadline_s=self._stop_deadline_s,
        )

    @property
    def pid(self) -> int:
        """The process id; raises ProcessNotRunningError when it is not running."""
        if self._process is None or self._process.poll() is not None:
            raise ProcessNotRunningError(f"{self.name} is not running: start it first (log: {self.log_path})")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def was_started(self) -> bool:
        """Return True if it was started and not stopped or killed since, even if it has ended by itself."""
        return self._process is not None

    @property
    def exit_code(self) -> int | None:
        """How it has ended, negative for a signal; None while it runs, and after `kill`."""
        return None if self._process is None else self._process.poll()

    @property
    def is_stopped(self) -> bool:
        """Whether it stands still after a SIGSTOP. Raises ProcessNotRunningError."""
        return self._stat()[0] == "T"

    @property
    def cpu_s(self) -> float:
        """Seconds of a processor that it has used. Other processes do not lengthen them. Raises ProcessNotRunningError."""
        user, system = self._stat()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Starts and waits until ready; raises StartError, and then nothing of it is left running."""
        self.spawn()
        self.wait_until_ready()

    def spawn(self) -> None:
        """Starts without waiting, so that several can start side by side; a running process is left alone."""
        if self.is_running:
            return
        with self.log_path.open("ab") as log:
            self._process = spawn(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env)
        _running.add(self)

    def wait_until_ready(self) -> None:
        """Waits for the readiness condition; on failure kills the process and raises StartError."""
        patience = Patience(self._start_silence_s, progress)
        try:
            while not self._is_ready():
                self._pause_while_starting(patience)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """SIGTERM, then SIGKILL when the deadline passes; returns when the process is gone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self._stop_deadline_s)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the process and all in its session; returns when it is gone. Harmless when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _running.discard(self)

    def send_signal(self, signum: signal.Signals) -> None:
        """Sends a signal to the running process, such as SIGSTOP and SIGCONT for a pause."""
        os.kill(self.pid, signum)

    def progress(self) -> Progress:
        """Return the size of the log, and the time of the last write into `writes_to`."""
        found: list[tuple[str, int]] = []
        with suppress(OSError):
            found.append((self.log_path.name, self.log_path.stat().st_size))
        if self._writes_to is not None:
            with suppress(OSError), os.scandir(self._writes_to) as files:
                found.append((f"{self.name} wrote", max((file.stat().st_mtime_ns for file in files), default=0)))
        return found

    def log_tail(self) -> str:
        """The last lines that the process wrote."""
        with suppress(FileNotFoundError):
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        return ""

    def _stat(self) -> list[str]:
        """The fields of its /proc/PID/stat from the third one, the state, on."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()

    def _is_ready(self) -> bool:
        # Something else may answer on the port of a server that died: only a live process counts as ready.
        try:
            return self.is_running and self._ready()
        except OSError:
            return False

    def _pause_while_starting(self, patience: Patience) -> None:
        if self._process is None or self._process.poll() is not None:
            status = None if self._process is None else self._process.returncode
            raise StartError(self._complaint(f"ended with exit status {status}"))
        if complaint := patience.pause():
            raise StartError(self._complaint(f"was not ready {complaint}"))

    def _complaint(self, what_happened: str) -> str:
        return f"{self.name} {what_happened}. Log: {self.log_path}\n{self.log_tail()}"


def spawn(
    command: Sequence[str],
    *,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: bool = False,
) -> subprocess.Popen[Any]:
    """`subprocess.Popen` in a session of its own, ended by the kernel when this process ends."""
    parent_death_signal = shutil.which("setpriv")
    prefix = [parent_death_signal, "--pdeathsig", "KILL", "--"] if parent_death_signal else []

    def start() -> subprocess.Popen[Any]:
        return subprocess.Popen(
            [*prefix, *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            text=text,
            start_new_session=True,
        )

    started: Future[subprocess.Popen[Any]] = Future()
    _ensure_spawner()
    try:
        _spawn_requests.put((start, started))
        return started.result()
    except BaseException:
        # Interrupted while it starts: nobody would know of it.
        _abandon(started)
        raise


def wait_until(
    condition: Callable[[], bool], what: str, *, silence_s: float = SILENCE_S, longest_s: float | None = None
) -> None:
    """Polls until the condition holds.

    Raises ConditionTimeoutError, which names `what`, after `silence_s` in which no server of this process made progress
    (see `Patience`), or after `longest_s` by the clock. A wait needs more silence than the default only if the servers are
    rightly silent for longer.
    """
    patience = Patience(silence_s, progress, longest_s=longest_s)
    while not condition():
        if complaint := patience.pause():
            raise ConditionTimeoutError(f"waited in vain until {what}: gave up {complaint}")


def progress() -> Progress:
    """Return what shows that the running servers work: the size of each log, and the last write into other files."""
    return sorted(each for process in list(_running) for each in process.progress())


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Turns SIGTERM into SystemExit while the block runs, so that contexts are left as after Ctrl-C (main
    thread only).
    """

    def leave(signum: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _abandon(started: "Future[subprocess.Popen[Any]]") -> None:
    with suppress(OSError, TimeoutError):
        process = started.result(_SPAWN_DEADLINE_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ensure_spawner() -> None:
    global _spawner
    with _spawner_lock:
        if _spawner is None:
            _spawner = threading.Thread(target=_serve_spawns, daemon=True, name="spawner")
            _spawner.start()


def _serve_spawns() -> None:
    while True:
        start, started = _spawn_requests.get()
        try:
            started.set_result(start())
        except OSError as error:
            started.set_exception(error)


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        process.kill()
