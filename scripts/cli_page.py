"""Writes docs/cli.md: every command for the administration of a cluster, with its help and examples."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
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

`kontroller` administers any Kafka cluster of version 2.8 or later over Kafka's own protocol, with any kind of controller.
It replaces kafka-topics, kafka-reassign-partitions, kafka-leader-election and kafka-features, with the same files
and flags. The [client library](admin-client.md) offers the same operations.

**Connection.** `--bootstrap-server HOST:PORT[,HOST:PORT...]`, or `KONTROLLER_BOOTSTRAP_SERVER` in the environment, names
any of the cluster's servers. `--command-config FILE` (`KONTROLLER_COMMAND_CONFIG`) is a file of Kafka's client
properties: `security.protocol`, `ssl.*` with PEM files, `sasl.mechanism` (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512),
`sasl.jaas.config`, `client.id` and `default.api.timeout.ms`. If it has `zookeeper.connect`, the commands also show topics
that are marked for deletion.

**Output.** The commands print tables. With `-o json` or `-o yaml` they print one document to standard output; questions,
and the plan that reverts a move, then go to standard error. An error is one line on standard error. It says what to
change. A command that waits for servers says there why, after three seconds.

**Throttles.** With Kontroller's controller, a throttle belongs to its move: Kontroller also throttles brokers that are
down, from their next start, and removes the throttle with the move. (To list the owners, describe its configuration
`kontroller.reassignment.throttle` by name.) With Kafka's controllers a throttle does not belong to a move, and `start`
says so. A broker that is down gets no throttle unless it returns while `start` waits, but brokers that copy from it are
throttled. `reassign verify`, `cancel` and the end of `start` remove the throttles of a plan's topics and brokers if nothing
moves in the whole cluster. Otherwise they report that the throttles stay. (Kafka's tool always removes them after a
cancellation.)

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | failed: the request was refused, not answered, or not confirmed |
| 2 | the command is wrong; nothing was sent |
| 3 | `verify`: not finished yet; with `--fail-on-changes`: something was, or would be, changed |
| 130 | interrupted; work that had begun continues |

**Shell.** `kontroller shell --bootstrap-server HOST:PORT` reads the same commands. It keeps a history, shows the controller
in its prompt, and completes commands, options, topics, brokers and features with Tab. `help` and `help topics create`
explain the commands with examples. `kontroller --install-completion` installs completion for bash, zsh or fish.

<!-- nothing below is run: tests/real/conformance/client/test_examples.py runs the examples -->
"""
_OPTIONS: Final = "| Option | Meaning |\n|---|---|"


def page() -> str:
    """Return the page."""
    shared = _find_shared_options()
    table = ["Every command has these options, unless its own table differs:\n", _OPTIONS, *shared, ""]
    return "\n".join([_HEAD, *table, *_files(), *(line for name in GROUPS for line in _group(name, shared))])


def _files() -> Iterator[str]:
    yield "The examples read these files:\n"
    yield from (f"`{name}`: `{text}`\n" for name, text in FILES.items())


def _find_group(name: str) -> TyperGroup:
    """Return the group of this name, which has its commands by their names."""
    everything = typer.main.get_command(main)
    assert isinstance(everything, TyperGroup)
    group = everything.commands[name]
    assert isinstance(group, TyperGroup)
    return group


def _find_shared_options() -> list[str]:
    """Return the rows of the options that most commands have alike."""
    commands = [command for group in GROUPS for command in _find_group(group).commands.values()]
    counts = Counter(row for command in commands for row in _options(command.params))
    return [row for row, count in counts.items() if count > len(commands) / 2]


def _group(name: str, shared: Collection[str]) -> Iterator[str]:
    yield f"## kontroller {name}\n"
    for word, command in _find_group(name).commands.items():
        yield f"### {name} {word}\n"
        yield f"{command.help}\n"
        examples = (each for each in EXAMPLES if each.command == f"{name} {word}")
        yield from (f"    # {each.about}\n    kontroller {each.arguments}\n" for each in examples)
        if own := [row for row in _options(command.params) if row not in shared]:
            yield from (_OPTIONS, *own, "")


def _options(parameters: Iterable[object]) -> Iterator[str]:
    return (_option(option) for option in parameters if isinstance(option, TyperOption))


def _option(option: TyperOption) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    required = " (required)" if option.required else ""
    return f"| `{names}`{required} | {(option.help or '').replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    PAGE.write_text(page())
