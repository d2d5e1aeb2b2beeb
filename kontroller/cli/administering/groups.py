"""The groups of administering commands by their first word, for the command line, the shell and the documentation."""

from collections.abc import Mapping
from typing import Final

import typer

from kontroller.cli.administering import cluster, elect, features, reassign, topics

GROUPS: Final[Mapping[str, typer.Typer]] = {
    "cluster": cluster.commands,
    "topics": topics.commands,
    "reassign": reassign.commands,
    "elect": elect.commands,
    "features": features.commands,
}
