"""The options by which all of these commands find their cluster, and how a command of theirs runs and ends."""

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import CommandConfig

if TYPE_CHECKING:
    from kontroller.client.admin_client import AdminClient
    from kontroller.client.properties import ClientProperties

EXIT_NOT_YET: Final = 3
EXIT_INTERRUPTED: Final = 130
MAX_FILE_CHARACTERS: Final = 64 * 1024 * 1024
"""Of a file of partitions: hundreds of thousands of them. What is larger is another file, or has no end."""
_LONGEST_MS: Final = 86_400_000
T = TypeVar("T")

Server = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        help="Kafka servers, brokers or the controller: HOST:PORT[,HOST:PORT...].",
        envvar="KONTROLLER_BOOTSTRAP",
        show_default=False,
    ),
]
Config = CommandConfig
TimeoutMs = Annotated[
    int | None,
    typer.Option(
        "--timeout-ms",
        help="For all that the command asks; default.api.timeout.ms, a minute, when left out.",
        min=1,
        max=_LONGEST_MS,
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Asks nothing: it is confirmed.")]


class Allowance:
    """The time of a command for all that it asks, in which each question has what is left; `--timeout-ms`, or what the
    properties allow. It runs from the first question on, and not while somebody is asked to confirm something."""

    def __init__(self, timeout_ms: int | None) -> None:
        self._given_ms = timeout_ms
        self._allowed_ms = timeout_ms
        self._used_s = 0.0
        self._since_s: float | None = None

    def or_else(self, default_ms: int) -> None:
        """What holds where none was given."""
        if self._allowed_ms is None:
            self._allowed_ms = default_ms

    def left_ms(self) -> int | None:
        """For the next question. Raises `Unreachable` where nothing is left."""
        from kontroller.client.errors import Unreachable

        if self._allowed_ms is None:
            return None
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        left_ms = math.ceil(self._allowed_ms - (self._used_s + now_s - self._since_s) * 1000)
        if left_ms <= 0:
            raise Unreachable(f"it did not come about in {self._allowed_ms} ms: allow more time, or look what goes on")
        return left_ms

    def left_if_given_ms(self) -> int | None:
        """For what may take as long as it takes, unless somebody said how long."""
        return None if self._given_ms is None else self.left_ms()

    def after_wait(self) -> "Allowance":
        """For what is to be done when a wait has ended: as much again where that had no limit."""
        return Allowance(self._allowed_ms) if self._given_ms is None else self

    def stop(self) -> None:
        """Nothing is asked for now."""
        if self._since_s is not None:
            self._used_s += time.monotonic() - self._since_s
            self._since_s = None


def run(
    server: str | None,
    config: Path | None,
    work: "Callable[[AdminClient, Allowance], Awaitable[T]]",
    allowed: Allowance | int | None,
) -> T:
    """What the work returns, done by a client of that cluster in that time; ends the command where it fails."""
    from kontroller.client.admin_client import AdminClient
    from kontroller.client.errors import AdminError, InvalidArgument

    allowance = allowed if isinstance(allowed, Allowance) else Allowance(allowed)

    async def with_client() -> T:
        properties = properties_of(server, config)
        allowance.or_else(properties.default_api_timeout_ms)
        return await work(AdminClient(properties), allowance)

    try:
        return asyncio.run(with_client())
    except InvalidArgument as error:
        raise usage_error(error) from error
    except AdminError as error:
        raise failure(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        allowance.stop()


def properties_of(server: str | None, config: Path | None) -> "ClientProperties":
    """Those of the file, with the servers of the option. Raises `InvalidArgument`."""
    from controller_core.security.properties_file import read_properties
    from kontroller.client.errors import InvalidArgument
    from kontroller.client.properties import ClientProperties, as_invalid_argument

    with as_invalid_argument():
        given = read_properties(config) if config is not None else {}
    if server is not None:
        given["bootstrap.servers"] = server
    if "bootstrap.servers" not in given:
        raise InvalidArgument("name servers of the cluster: --bootstrap-server HOST:PORT")
    return ClientProperties.of(given, config.parent if config is not None else Path())


def read_text(file: Path) -> str:
    """What a file says, `-` being standard input; ends the command where it cannot be read, or is no plan for its size."""
    try:
        if str(file) == "-":
            text = typer.get_text_stream("stdin").read(MAX_FILE_CHARACTERS + 1)
        else:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(MAX_FILE_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise usage_error(ValueError(f"{file} cannot be read: {error}")) from error
    if len(text) > MAX_FILE_CHARACTERS:
        raise usage_error(
            ValueError(f"{file} has more than {MAX_FILE_CHARACTERS} characters: give the partitions in several files")
        )
    return text


def confirmed(title: str, things: Sequence[str] = (), *, yes: bool, loses_data: bool = False) -> bool:
    """Whether somebody says so of the things, which are numbered below a title; without a terminal nobody does. Enter alone
    is a yes, as the specification has it, but not where data is lost.

    It is asked on standard error, as standard output is for what the command finds. Not to be called in an event loop,
    which would take Ctrl-C for itself: that ends the command here."""
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
        raise usage_error(ValueError("nobody is there to confirm it: give --yes"))
    answer = line.strip().lower()
    return answer in ("y", "yes") or (not answer and not loses_data)


def key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Of `NAME=VALUE`, several times; ends the command where one is not."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise usage_error(ValueError(f"{option} {pair!r} is no NAME=VALUE"))
        if name in found:
            raise usage_error(ValueError(f"{option} sets {name} twice: say once what it is to be"))
        found[name] = value
    return found
