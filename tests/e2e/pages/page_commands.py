"""The commands of a documentation page, run as a reader does who copies each block into one shell.

A block of code without a language, or with the language `sh`, has commands if it begins with a program. A comment above a
block says why nobody can run it on the node: `<!-- not run: REASON -->`. `<!-- nothing below is run: REASON -->` is for all
blocks that follow on the page. A command that goes on for ever is ended after a while (`--watch`), or runs beside the rest
of its block (`port-forward`).
"""

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import markdown

_PROGRAMS: Final = "kubectl|helm|kontroller|make|ctr|curl|export|echo|docker|podman|openssl|python|pip|git"
_COMMANDS: Final = re.compile(rf"(#.*\n)*({_PROGRAMS}|kontroller-broker|kafka-[a-z-]+\.sh|spark-[a-z]+) ")
_NOT_RUN: Final = re.compile(r"\s*not run: (.+?)\s*", re.DOTALL)
_NOTHING_RUN: Final = re.compile(r"\s*nothing below is run: (.+?)\s*", re.DOTALL)
_WATCH: Final = re.compile(r"^(kubectl .*--watch\b.*)$", re.MULTILINE)
_FORWARD: Final = re.compile(r"^(kubectl .*\bport-forward\b.*)$", re.MULTILINE)
_WATCHED_S: Final = 20
_DEADLINE_S: Final = 900
# Everything must succeed, but a grep at the end of a pipe may find nothing.
_SHELL: Final = """
set -o pipefail
check() {
    local command=$1
    shift
    while [ $# -gt 0 ]; do
        [ "$1" = 0 ] || [ "$#,$1,${command%% *}" = 1,1,grep ] || { echo "exit status $1: $command" >&2; exit 1; }
        shift
    done
}
trap 'check "$BASH_COMMAND" "${PIPESTATUS[@]}"' ERR
forward() {
    coproc "$@"
    trap "kill $COPROC_PID" EXIT
    read -r -u "${COPROC[0]}"
}
"""


class CommandFailed(Exception):
    """A command of a page failed; the message is its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of commands. `not_run` is the reason why a reader of the node cannot run it; None if they can."""

    section: str
    commands: str
    not_run: str | None


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of commands of a page, in order."""
    reader = _Reader()
    reader.feed(markdown.markdown(page.read_text(), extensions=["fenced_code", "tables"]))
    for block in reader.blocks:
        if _COMMANDS.match(block.commands):
            yield block


def run_block(block: Block, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a block and return its output. Raises CommandFailed."""
    commands = _WATCH.sub(rf"timeout {_WATCHED_S} \1 || [ $? = 124 ]", _FORWARD.sub(r"forward \1", block.commands))
    done = subprocess.run(
        ["bash", "-c", f"{_SHELL}{commands}\nexit 0"],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode != 0:
        raise CommandFailed(f"{block.section}:\n{block.commands}\n{done.stdout}")
    return done.stdout


class _Reader(HTMLParser):
    """Reads blocks of code, with the section and the comment above each."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._section = self._remark = ""
        self._nothing_run: str | None = None
        self._text: list[str] | None = None
        self._is_in_pre = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_in_pre = tag == "pre" or (self._is_in_pre and tag == "code")
        language = dict(attrs).get("class") or "language-sh"
        if tag in ("h1", "h2", "h3", "h4") or (tag == "code" and self._is_in_pre and language == "language-sh"):
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._text or ())
        if tag in ("h1", "h2", "h3", "h4"):
            self._section, self._text = text, None
        elif tag == "code" and self._is_in_pre:
            if self._text is not None:
                found = _NOT_RUN.fullmatch(self._remark)
                not_run = found[1] if found else self._nothing_run
                self.blocks.append(Block(section=self._section, commands=textwrap.dedent(text), not_run=not_run))
            self._text, self._remark, self._is_in_pre = None, "", False

    def handle_comment(self, data: str) -> None:
        self._remark = data
        if found := _NOTHING_RUN.fullmatch(data):
            self._nothing_run = found[1]
