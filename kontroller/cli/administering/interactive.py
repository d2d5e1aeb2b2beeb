"""The interactive shell: reads commands, and completes names from the live cluster.

prompt_toolkit reads the lines. Each line runs as the command of that name, in this process and its main thread, so the
shell needs no knowledge of commands, and Ctrl-C ends the command. A client of the shell's own, in a thread, refreshes
the names to complete: a cluster that does not answer makes completions poor, but nothing slow."""

import asyncio
import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from typer.core import TyperCommand, TyperGroup

from controller_core.supervision import start_supervised
from kontroller import AdminClient, AdminError, BlockingAdminClient, ClientProperties
from kontroller.cli.administering.examples import EXAMPLES
from kontroller.cli.endings import say_in_one_line

_EVERY_S: Final = 10.0
_FIRST_LOOK_S: Final = 2.0
_REFRESHED_S: Final = 1.0
_ASK_MS: Final = 5_000
_WAYS_OUT: Final = ("exit", "quit")
_HELP: Final = "help"
_OF_TOPICS: Final = frozenset({"--topic"})
_OF_FEATURES: Final = frozenset({"--features", "--feature-upgrade", "--feature-force-downgrade"})
_OF_BROKERS: Final = frozenset({"--replica-assignment"})
_SEVERAL: Final = frozenset({"--replica-assignment", "--features"})
"""Options with several names in one value. Only the last name is completed."""
_SEPARATORS: Final = re.compile("[,:]")


@dataclass(slots=True)
class Known:
    """The names in the cluster, as of its last answer."""

    controller: str = "?"
    topics: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(slots=True)
class Words(Completer):
    """A completer of commands and options from the commands themselves, and of names from the cluster."""

    groups: Mapping[str, TyperGroup]
    known: Known = field(default_factory=Known)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Override prompt_toolkit's method."""
        before = document.text_before_cursor
        words = before.split()
        typed = "" if not before or before[-1].isspace() else words.pop()
        last = _SEPARATORS.split(typed)[-1] if words and words[-1] in _SEVERAL else typed
        for candidate in sorted(set(self.list_candidates(words))):
            if candidate.startswith(last):
                yield Completion(candidate, start_position=-len(last))

    def list_candidates(self, words: list[str]) -> Iterator[str]:
        """Yield the words that may follow these words."""
        if not words:
            yield from (*self.groups, _HELP, *_WAYS_OUT)
            return
        group = self.groups.get(words[0])
        if group is None:
            return
        if len(words) == 1:
            yield from group.commands
            return
        yield from self._complete_command(group.commands.get(words[1]), words[2:])

    def _complete_command(self, command: Any, words: list[str]) -> Iterator[str]:
        last = words[-1] if words else ""
        if last in _OF_TOPICS:
            yield from self.known.topics
        elif last in _OF_FEATURES:
            yield from self.known.features
        elif last in _OF_BROKERS:
            yield from self.known.brokers
        elif isinstance(command, TyperCommand):
            yield from (name for option in command.params for name in (*option.opts, *option.secondary_opts))


def run_shell(properties: ClientProperties, commands: typer.Typer) -> None:
    """Read and run lines until `exit` or the end of the input."""
    whole = typer.main.get_command(commands)
    assert isinstance(whole, TyperGroup)
    words = Words(groups={name: each for name, each in whole.commands.items() if isinstance(each, TyperGroup)})
    session: PromptSession[str] = PromptSession(
        history=_open_history(), completer=words, complete_while_typing=False, enable_history_search=True
    )
    with BlockingAdminClient(properties) as client:
        admin = client.asynchronous
        looking = client.submit(_keep_looking(admin, words.known))
        with contextlib.suppress(TimeoutError):
            client.submit(look(admin, words.known)).result(timeout=_FIRST_LOOK_S)
        while (line := _read(session, words.known)) is not None:
            run_line(whole, words.groups, line)
        looking.cancel()


async def look(admin: AdminClient, known: Known) -> None:
    """Read the cluster's names. If the cluster does not answer, the last ones stay."""
    try:
        cluster = await admin.describe_cluster(timeout_ms=_ASK_MS)
        controller, replicas = cluster.controller.id if cluster.controller else None, cluster.count_replicas()
        known.controller = "none" if controller is None else str(controller)
        # A controller that is not a broker is also listed, without replicas.
        known.brokers = tuple(str(broker) for broker in cluster.brokers if broker != controller or replicas[broker])
        known.topics = tuple((await admin.list_topics(timeout_ms=_ASK_MS)).alive)
        features = await admin.describe_features(timeout_ms=_ASK_MS)
        known.features = tuple(sorted({*features.finalized, *features.supported}))
    except AdminError:
        known.controller = "?"


async def _keep_looking(admin: AdminClient, known: Known) -> None:
    async def keep_looking() -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await look(admin, known)

    await start_supervised(keep_looking, name="what a shell knows of its cluster")


def _read(session: "PromptSession[str]", known: Known) -> str | None:
    """Return the next line; None at the end of the input."""
    while True:
        try:
            prompt = session.prompt(
                lambda: f"kontroller [controller {known.controller}]> ", refresh_interval=_REFRESHED_S
            )
        except KeyboardInterrupt:
            continue
        except EOFError:
            return None
        line = prompt.strip()
        if line in _WAYS_OUT:
            return None
        if line:
            return line


def run_line(whole: TyperGroup, groups: Mapping[str, TyperGroup], line: str) -> None:
    """Run one line. The shell goes on whatever happens."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        say_in_one_line(f"{line!r} cannot be read: {error}")
        return
    if words[0] == _HELP:
        _print_help(words[1:], groups)
        return
    if words[0] not in groups:
        say_in_one_line(f"{words[0]!r} is not a command: {', '.join(groups)}, {_HELP} or exit")
        return
    try:
        whole.main(args=words, prog_name="kontroller", standalone_mode=True)
    except SystemExit:
        pass
    except KeyboardInterrupt:
        say_in_one_line("interrupted")
    except Exception as error:  # noqa: BLE001 - a broken command must not end the shell
        say_in_one_line(f"internal error of the command: {type(error).__name__}: {error}")


def _print_help(words: list[str], groups: Mapping[str, TyperGroup]) -> None:
    wanted = " ".join(words)
    for group, commands in groups.items():
        for name, command in commands.commands.items():
            full = f"{group} {name}"
            if full.startswith(wanted):
                typer.echo(f"{full:22} {(command.help or '').splitlines()[0]}")
                for example in (each for each in EXAMPLES if wanted and each.command == full):
                    typer.echo(f"{'':22}   {example.arguments}")


def _open_history() -> FileHistory | InMemoryHistory:
    """Return the history in the user's state folder, or in memory if that folder cannot be used."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    try:
        folder = state / "kontroller"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "shell_history"
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
