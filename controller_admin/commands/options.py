"""The options that several commands have."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from controller_core.wire.client.request_client import Address

_LARGEST_ID = 2**31 - 1
_LONGEST_S = 24 * 3600

Bootstrap = Annotated[
    str,
    typer.Option(help="Kafka servers: HOST:PORT[,HOST:PORT...].", envvar="KONTROLLER_BOOTSTRAP", show_default=False),
]
BrokerIdOption = Annotated[
    int, typer.Option(help="The broker's id.", envvar="KONTROLLER_BROKER_ID", min=0, max=_LARGEST_ID)
]
DeadlineSeconds = Annotated[
    int,
    typer.Option(help="Give up after so long.", envvar="KONTROLLER_DEADLINE_SECONDS", min=1, max=_LONGEST_S),
]


def bootstrap_addresses(text: str) -> "tuple[Address, ...]":
    """The servers of `--bootstrap`; ends the command where it is not a list of them."""
    from controller_core.wire.client.request_client import parse_addresses

    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from error
