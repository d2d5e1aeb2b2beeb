"""The shell itself: commands that are typed one after the other, with what the live cluster has to complete them.

prompt_toolkit reads the lines; each is run as the command of that name, in this process and its main thread. So nothing
here knows what a command does, and Ctrl-C ends the command. What is completed from the cluster is asked for now and then by
a client of the shell's own, in a thread: a cluster that does not answer makes completions poor, and nothing slow.
"""

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

from controller_core.supervision import supervised
from kontroller.cli.administering.examples import EXAMPLES
from kontroller.cli.endings import say_in_one_line
from kontroller.client.admin_client import AdminClient, BlockingAdminClient
from kontroller.client.errors import AdminError
from kontroller.client.properties import ClientProperties

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
"""Options of several names: what is completed is the last one."""
_SEPARATORS: Final = re.compile("[,:]")


@dataclass(slots=True)
class Known:
    """What the cluster had when it was last asked."""

    controller: str = "?"
    topics: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(slots=True)
class Words(Completer):
    """Completes commands and options from the commands themselves, and names from the cluster."""

    groups: Mapping[str, TyperGroup]
    known: Known = field(default_factory=Known)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """See prompt_toolkit."""
        before = document.text_before_cursor
        words = before.split()
        typed = "" if not before or before[-1].isspace() else words.pop()
        last = _SEPARATORS.split(typed)[-1] if words and words[-1] in _SEVERAL else typed
        for candidate in sorted(set(self.candidates(words))):
            if candidate.startswith(last):
                yield Completion(candidate, start_position=-len(last))

    def candidates(self, words: list[str]) -> Iterator[str]:
        """What may come after these words."""
        if not words:
            yield from (*self.groups, _HELP, *_WAYS_OUT)
            return
        group = self.groups.get(words[0])
        if group is None:
            return
        if len(words) == 1:
            yield from group.commands
            return
        yield from self._of_command(group.commands.get(words[1]), words[2:])

    def _of_command(self, command: Any, words: list[str]) -> Iterator[str]:
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
    """Reads and runs lines until `exit` or the end of the input."""
    whole = typer.main.get_command(commands)
    assert isinstance(whole, TyperGroup)
    words = Words(groups={name: each for name, each in whole.commands.items() if isinstance(each, TyperGroup)})
    session: PromptSession[str] = PromptSession(
        history=_history(), completer=words, complete_while_typing=False, enable_history_search=True
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
    """Asks the cluster what there is; what cannot be asked now stays as it was."""
    try:
        cluster = await admin.describe_cluster(timeout_ms=_ASK_MS)
        known.controller = "none" if cluster.controller is None else str(cluster.controller)
        # A controller that is no broker is listed as one, and has no replicas.
        brokers = (node for node in cluster.nodes if node.id != cluster.controller or node.replicas)
        known.brokers = tuple(str(node.id) for node in brokers)
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

    await supervised(keep_looking, name="what a shell knows of its cluster")


def _read(session: "PromptSession[str]", known: Known) -> str | None:
    """The next line; None at the end."""
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
    """Runs one line; however it ends, the shell goes on."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        say_in_one_line(f"{line!r} cannot be read: {error}")
        return
    if words[0] == _HELP:
        _help(words[1:], groups)
        return
    if words[0] not in groups:
        say_in_one_line(f"{words[0]!r} is no command: {', '.join(groups)}, {_HELP} or exit")
        return
    try:
        whole.main(args=words, prog_name="kontroller", standalone_mode=True)
    except SystemExit:
        pass
    except KeyboardInterrupt:
        say_in_one_line("interrupted")
    except Exception as error:  # noqa: BLE001 - a command that is broken ends, and the others go on
        say_in_one_line(f"this is a fault of the command's: {type(error).__name__}: {error}")


def _help(words: list[str], groups: Mapping[str, TyperGroup]) -> None:
    wanted = " ".join(words)
    for group, commands in groups.items():
        for name, command in commands.commands.items():
            full = f"{group} {name}"
            if full.startswith(wanted):
                typer.echo(f"{full:22} {(command.help or '').splitlines()[0]}")
                for example in (each for each in EXAMPLES if wanted and each.command == full):
                    typer.echo(f"{'':22}   {example.arguments}")


def _history() -> FileHistory | InMemoryHistory:
    """Beside the other state of this user's programs; in memory where there is no place for it."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    try:
        folder = state / "kontroller"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "shell_history"
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
