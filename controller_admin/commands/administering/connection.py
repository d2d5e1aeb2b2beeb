"""The options by which all of these commands find their cluster, and how a command of theirs runs and ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from controller_admin.commands.endings import failure, usage_error

if TYPE_CHECKING:
    from controller_admin.client.admin_client import AdminClient
    from controller_admin.client.properties import ClientProperties

EXIT_NOT_YET: Final = 3
_INTERRUPTED: Final = 130
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
Config = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        help="A file of properties, as Kafka's tools take it: security.protocol, ssl.*, sasl.*, ...",
        envvar="KONTROLLER_COMMAND_CONFIG",
        show_default=False,
    ),
]
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


def run(server: str | None, config: Path | None, work: "Callable[[AdminClient], Awaitable[T]]") -> T:
    """What the work returns, done by a client of that cluster; ends the command where it fails."""
    from controller_admin.client.admin_client import AdminClient
    from controller_admin.client.errors import AdminError, InvalidArgument

    async def with_client() -> T:
        return await work(AdminClient(properties_of(server, config)))

    try:
        return asyncio.run(with_client())
    except InvalidArgument as error:
        raise usage_error(error) from error
    except AdminError as error:
        raise failure(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


def properties_of(server: str | None, config: Path | None) -> "ClientProperties":
    """Those of the file, with the servers of the option. Raises `InvalidArgument`."""
    from controller_admin.client.errors import InvalidArgument
    from controller_admin.client.properties import ClientProperties, read_properties

    given = read_properties(config) if config is not None else {}
    if server is not None:
        given["bootstrap.servers"] = server
    if "bootstrap.servers" not in given:
        raise InvalidArgument("name servers of the cluster: --bootstrap-server HOST:PORT")
    return ClientProperties.of(given)


def read_text(file: Path) -> str:
    """What a file says, `-` being standard input; ends the command where it cannot be read."""
    try:
        return typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise usage_error(ValueError(f"{file} cannot be read: {error}")) from error


def confirmed(title: str, things: Sequence[str] = (), *, yes: bool, loses_data: bool = False) -> bool:
    """Whether somebody says so of the things, which are numbered below a title; without a terminal nobody does. Enter alone
    is a yes, as the specification has it, but not where data is lost."""
    typer.echo(title)
    for number, thing in enumerate(things, start=1):
        typer.echo(f"{number}. {thing}")
    if yes:
        return True
    try:
        answer = input("\n[y/N]? " if loses_data else "\n[Y/n]? ").strip().lower()
    except EOFError:
        raise usage_error(ValueError("nobody is there to confirm it: give --yes")) from None
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
