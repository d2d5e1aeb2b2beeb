"""Writes docs/cli.md: every command that administers a cluster, from the commands themselves, with an example of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer
from typer.core import TyperGroup, TyperOption

from kontroller.cli.administering.examples import EXAMPLES, FILES
from kontroller.cli.administering.groups import GROUPS
from kontroller.command_line import main

PAGE: Final = Path(__file__).parent.parent / "docs" / "cli.md"
_HEAD: Final = """\
# Commands that administer a cluster

`kontroller` administers any Kafka cluster of version 2.8 or later from the outside, whoever its controller is, over Kafka's
own protocol: what kafka-topics, kafka-reassign-partitions, kafka-leader-election and kafka-features do, by the same files,
and with the same flags where there were any. [The same as a library](admin-client.md).

**Where the cluster is.** `--bootstrap-server HOST:PORT[,HOST:PORT...]` names any of its servers, or `KONTROLLER_BOOTSTRAP`
in the environment. `--command-config FILE` (`KONTROLLER_COMMAND_CONFIG`) has properties by the names of Kafka's clients:
`security.protocol`, `ssl.*` with PEM files, `sasl.mechanism` (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512), `sasl.jaas.config`,
`client.id`, `default.api.timeout.ms`; and `zookeeper.connect`, by which topics that are marked for deletion are known.

**What it prints.** Tables for people, `-o json` or `-o yaml` for programs: one document on standard output, nothing else
there. What is to be confirmed, and the plan that takes a move back, are then on standard error, and errors are one line
there that says what to change.

**Throttles.** As with kafka-reassign-partitions they belong to no move. `reassign verify`, `cancel` and the end of `start`
take those of a plan's topics and brokers away, where nothing moves in the whole cluster; while anything does they say that
throttles stay. Kafka's tool takes them away after a cancellation whatever moves.

| Exit code | Means |
|---|---|
| 0 | done |
| 1 | failed: what was asked for was refused, nobody answers, or it was not confirmed |
| 2 | the command is wrong: nothing was sent |
| 3 | `verify`: not yet; with `--fail-on-changes` something is, or would be, altered |
| 130 | interrupted; what had begun goes on |

**Typed one after the other.** `kontroller shell --bootstrap-server HOST:PORT` reads the same commands, keeps a history,
shows the controller in its prompt, and by Tab completes commands, options, and the topics, brokers and features of the
cluster. `help` and `help topics create` say what there is, with examples. `kontroller --install-completion` has bash, zsh
or fish complete commands and options.
"""


def page() -> str:
    """The page."""
    return "\n".join([_HEAD, *_files(), *(line for name in GROUPS for line in _group(name))])


def _files() -> Iterator[str]:
    yield "The examples read these files:\n"
    yield from (f"`{name}`: `{text}`\n" for name, text in FILES.items())


def _group(name: str) -> Iterator[str]:
    group = typer.main.get_command(main)
    assert isinstance(group, TyperGroup)
    commands = group.commands[name]
    assert isinstance(commands, TyperGroup)
    yield f"## kontroller {name}\n"
    for word, command in commands.commands.items():
        yield f"### {name} {word}\n"
        yield f"{command.help}\n"
        examples = (each for each in EXAMPLES if each.command == f"{name} {word}")
        yield from (f"    # {each.about}\n    kontroller {each.arguments}\n" for each in examples)
        yield "| Option | Meaning |\n|---|---|"
        yield from (_option(option) for option in command.params if isinstance(option, TyperOption))
        yield ""


def _option(option: TyperOption) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    required = " (required)" if option.required else ""
    return f"| `{names}`{required} | {(option.help or '').replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    PAGE.write_text(page())
