"""Server processes that end with this process. Each is started in its own session, watched until ready, and stopped on
demand.

Three mechanisms keep a server from outliving its starter. Leaving a server's context ends it. An `atexit` hook ends the
remaining ones after an error, Ctrl-C or SIGTERM (`exit_on_sigterm`). The kernel's parent-death signal ends it if this
process is killed. That signal follows the *thread* that started the child, so every start happens on one thread that
lives as long as the process.
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
    """A process ended, or stopped making progress, before it was ready; the message ends with its last log lines."""


class ProcessNotRunningError(Exception):
    """The call needs a running process, and the process is not running."""


class ConditionTimeoutError(Exception):
    """A condition did not become true before the servers stopped making progress."""


class ManagedProcess:
    """A server process. `start` may be called again after `stop` or `kill`; the log is appended to.

    `ready` is polled after the start and may raise OSError while the server is not there yet. The server shows progress
    by writing to its log and, if it has any, to the files in the folder `writes_to`.
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

    def copy_with_command(self, command: Sequence[str]) -> "ManagedProcess":
        """Return the same server with another command line, not started yet."""
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
        """The process id. Raises ProcessNotRunningError."""
        if self._process is None or self._process.poll() is not None:
            raise ProcessNotRunningError(f"{self.name} is not running: start it first (log: {self.log_path})")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def was_started(self) -> bool:
        """True if it was started and not stopped or killed since, even if it has exited."""
        return self._process is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs, and after `kill`."""
        return None if self._process is None else self._process.poll()

    @property
    def is_stopped(self) -> bool:
        """True after a SIGSTOP, until SIGCONT. Raises ProcessNotRunningError."""
        return self._stat()[0] == "T"

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time that it has used, independent of other processes. Raises ProcessNotRunningError."""
        user, system = self._stat()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def start(self) -> None:
        """Start and wait until ready. Raises StartError, after killing the process."""
        self.spawn()
        self.wait_until_ready()

    def spawn(self) -> None:
        """Start without waiting, so that several can start in parallel; a running process is left alone."""
        if self.is_running:
            return
        with self.log_path.open("ab") as log:
            self._process = spawn(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env)
        _running.add(self)

    def wait_until_ready(self) -> None:
        """Wait until the server is ready; on failure, kill the process and raise StartError."""
        patience = Patience(self._start_silence_s, progress)
        try:
            while not self._is_ready():
                self._pause_while_starting(patience)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after the deadline; return when the process is gone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self._stop_deadline_s)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the process and its whole session; return when it is gone. Harmless if it is not running."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        _running.discard(self)

    def send_signal(self, signum: signal.Signals) -> None:
        """Send a signal to the running process, such as SIGSTOP and SIGCONT for a pause."""
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
        """Return the last lines that the process logged."""
        with suppress(FileNotFoundError):
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        return ""

    def _stat(self) -> list[str]:
        """Return the fields of its /proc/PID/stat from the third one, the state."""
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
    """Run `subprocess.Popen` in a new session; the kernel ends the child when this process ends."""
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
        # Interrupted during the start: nobody else could end the child.
        _abandon(started)
        raise


def wait_until(
    condition: Callable[[], bool], what: str, *, silence_s: float = SILENCE_S, longest_s: float | None = None
) -> None:
    """Poll until the condition is true.

    Raises ConditionTimeoutError, which names `what`, after `silence_s` in which no server of this process made progress
    (see `Patience`), or after `longest_s` by the clock. Give more silence than the default only if the servers are
    rightly silent for longer.
    """
    patience = Patience(silence_s, progress, longest_s=longest_s)
    while not condition():
        if complaint := patience.pause():
            raise ConditionTimeoutError(f"waited in vain until {what}: gave up {complaint}")


def progress() -> Progress:
    """Return the progress of all running servers: the size of each log, and the last write into other files."""
    return sorted(each for process in list(_running) for each in process.progress())


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Raise SystemExit on SIGTERM while the block runs, so that contexts are left as after Ctrl-C. Main thread only."""

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
