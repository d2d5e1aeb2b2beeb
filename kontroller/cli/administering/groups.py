"""The commands that administer a cluster, by the word that begins them: for the command line, the shell and the page."""

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
