"""The connection options of all administering commands, and the frame in which such a command runs and ends."""

import asyncio
import logging
import math
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from kontroller.cli.endings import failure, say_in_one_line, usage_error
from kontroller.cli.options import LONGEST_MS, CommandConfig

if TYPE_CHECKING:
    from kontroller import AdminClient, ClientProperties

EXIT_NOT_YET: Final = 3
EXIT_INTERRUPTED: Final = 130
MAX_FILE_CHARACTERS: Final = 64 * 1024 * 1024
"""Limit of a file of partitions: enough for hundreds of thousands. A larger file is another kind of file, or
endless."""
_TOLD_AFTER_S: Final = 3.0
"""Most problems of a request, such as a controller that has just changed, are over by then."""
T = TypeVar("T")

Server = Annotated[
    str | None,
    typer.Option(
        help="Kafka servers, brokers or the controller: HOST:PORT[,HOST:PORT...].",
        envvar="KONTROLLER_BOOTSTRAP_SERVER",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


class Allowance:
    """The time budget of a command for all of its requests: `--timeout-ms`, or the default of the properties.

    Each request may use the rest. The clock starts with the first request, and stands still while a person is asked to
    confirm something."""

    def __init__(self, timeout_ms: int | None) -> None:
        self._given_ms = timeout_ms
        self._allowed_ms = timeout_ms
        self._used_s = 0.0
        self._since_s: float | None = None

    def set_default(self, default_ms: int) -> None:
        """Set the budget if none was given."""
        if self._allowed_ms is None:
            self._allowed_ms = default_ms

    def require_time_ms(self) -> int | None:
        """Return the time for the next request. Raises `Unreachable` if nothing is left."""
        from kontroller import Unreachable

        if self._allowed_ms is None:
            return None
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        left_ms = math.ceil(self._allowed_ms - (self._used_s + now_s - self._since_s) * 1000)
        if left_ms <= 0:
            raise Unreachable(
                f"it did not happen within {self._allowed_ms} ms: raise --timeout-ms, or check the cluster"
            )
        return left_ms

    def require_time_if_limited_ms(self) -> int | None:
        """Return the time for a wait: no limit (None), unless the user gave one."""
        return None if self._given_ms is None else self.require_time_ms()

    def renew_after_wait(self) -> "Allowance":
        """Return the budget for the work after a wait: a full one if the wait had no limit."""
        return Allowance(self._allowed_ms) if self._given_ms is None else self

    def stop(self) -> None:
        """Stop the clock."""
        if self._since_s is not None:
            self._used_s += time.monotonic() - self._since_s
            self._since_s = None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster that a command administers, and the time for its requests."""

    bootstrap_server: Server = None
    command_config: CommandConfig = None
    timeout_ms: Annotated[
        int | None,
        typer.Option(
            help="Milliseconds that all requests of the command together may take. Default: default.api.timeout.ms, "
            "one minute.",
            min=1,
            max=LONGEST_MS,
            show_default=False,
        ),
    ] = None

    def ask(
        self, request: "Callable[[AdminClient, int | None], Awaitable[T]]", allowance: Allowance | None = None
    ) -> T:
        """Return the result of one request of an admin client, which gets the time that it may take."""
        return self.run(lambda admin, time: request(admin, time.require_time_ms()), allowance)

    def run(self, work: "Callable[[AdminClient, Allowance], Awaitable[T]]", allowance: Allowance | None = None) -> T:
        """Return the result of work with an admin client, in the allowed time. Ends the command if the work fails."""
        from kontroller import AdminClient, AdminError, InvalidArgument

        time = allowance or Allowance(self.timeout_ms)

        async def run_work() -> T:
            properties = load_properties(self.bootstrap_server, self.command_config)
            time.set_default(properties.default_api_timeout_ms)
            return await work(AdminClient(properties), time)

        logger, handler = logging.getLogger("kontroller.client"), _Waiting()
        level = logger.level
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
        try:
            return asyncio.run(run_work())
        except InvalidArgument as error:
            raise usage_error(error) from error
        except AdminError as error:
            raise failure(error) from error
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            time.stop()


class _Waiting(logging.Handler):
    """Tells on standard error why a command takes long: each problem of its requests once, after a few seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._told_from_s = time.monotonic() + _TOLD_AFTER_S
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.getMessage()
        if time.monotonic() >= self._told_from_s and problem not in self._told:
            self._told.add(problem)
            say_in_one_line(f"trying again: {problem}")


def load_properties(server: str | None, config: Path | None) -> "ClientProperties":
    """Return the properties of the file, with the servers of the option. Raises `InvalidArgument`."""
    from controller_core.security.properties_file import InvalidProperties, read_properties
    from kontroller import ClientProperties, InvalidArgument

    try:
        given = read_properties(config) if config is not None else {}
    except InvalidProperties as error:
        raise InvalidArgument(str(error)) from error
    if server is not None:
        given["bootstrap.servers"] = server
    if "bootstrap.servers" not in given:
        raise InvalidArgument("name servers of the cluster: --bootstrap-server HOST:PORT")
    return ClientProperties.parse(given, config.parent if config is not None else Path())


def read_text(file: Path) -> str:
    """Return the text of a file, or of standard input for `-`. Ends the command if it is unreadable or too large for a
    plan."""
    try:
        if str(file) == "-":
            text = typer.get_text_stream("stdin").read(MAX_FILE_CHARACTERS + 1)
        else:
            with file.open(encoding="utf-8-sig") as opened:
                text = opened.read(MAX_FILE_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise usage_error(ValueError(f"{file} cannot be read: {error}")) from error
    if len(text) > MAX_FILE_CHARACTERS:
        raise usage_error(
            ValueError(f"{file} has more than {MAX_FILE_CHARACTERS} characters: give the partitions in several files")
        )
    return text


def confirm(title: str, things: Sequence[str] = (), *, yes: bool, loses_data: bool = False) -> bool:
    """Ask the user to confirm things, which are numbered below a title. Return True if the user agrees.

    Without a terminal the command ends. Enter alone means yes, as the specification of KIP-584's tool says, but not if
    data is lost. The question goes to standard error, because standard output is for results. Do not call this in an
    event loop, which would catch Ctrl-C: here Ctrl-C has to end the command."""
    typer.echo(title, err=True)
    for number, thing in enumerate(things, start=1):
        typer.echo(f"{number}. {thing}", err=True)
    if yes:
        return True
    try:
        typer.echo("\n[y/N]? " if loses_data else "\n[Y/n]? ", nl=False, err=True)
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        typer.echo("\nkontroller: interrupted: nothing is changed", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not line:
        typer.echo(err=True)
        raise usage_error(ValueError("there is no terminal to confirm this: give --yes"))
    answer = line.strip().lower()
    return answer in ("y", "yes") or (not answer and not loses_data)


def parse_key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Parse repeated `NAME=VALUE` options. Ends the command if one is malformed."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise usage_error(ValueError(f"{option} {pair!r} is not NAME=VALUE"))
        if name in found:
            raise usage_error(ValueError(f"{option} sets {name} twice: give it once"))
        found[name] = value
    return found
