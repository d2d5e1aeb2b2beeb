"""Shells complete commands, options and values, by the scripts that `--show-completion` prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a `kontroller` on the PATH, as an installation makes one."""
    command = tmp_path / "kontroller"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kontroller "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}"}


def read_output(env: dict[str, str], *command: str) -> str:
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("kontroller topics de", ["delete", "describe"]),
        ("kontroller reassign start --reas", ["--reassignment-json-file"]),
        ("kontroller cluster describe -o ", ["table", "json", "yaml"]),
    ],
)
def test_bash_completes_commands_options_and_values(env: dict[str, str], typed: str, completed: list[str]) -> None:
    *words, last = typed.split(" ")
    array = " ".join(words) + f" '{last}'"
    script = (
        f'eval "$(_KONTROLLER_COMPLETE=source_bash kontroller)"; complete -p kontroller >/dev/null || exit 1;'
        f"COMP_WORDS=({array}); COMP_CWORD={len(words)}; _kontroller_completion kontroller;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert read_output(env, "bash", "-c", script).split() == completed


def test_zsh_is_told_the_same_with_what_each_means(env: dict[str, str]) -> None:
    script = read_output({**env, "_KONTROLLER_COMPLETE": "source_zsh"}, "kontroller")
    assert script.strip().startswith("#compdef kontroller")
    assert '_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _KONTROLLER_COMPLETE=complete_zsh kontroller' in script
    asking = {**env, "_KONTROLLER_COMPLETE": "complete_zsh"}
    commands = read_output({**asking, "_TYPER_COMPLETE_ARGS": "kontroller topics de"}, "kontroller")
    assert commands.startswith('_arguments \'*: :(("delete":"Deletes topics, including their data.')
    assert '\n"describe":"Shows partitions' in commands
    options = read_output({**asking, "_TYPER_COMPLETE_ARGS": "kontroller topics list --ex"}, "kontroller")
    assert options.startswith('_arguments \'*: :(("--exclude-internal":')


def test_how_it_is_installed_is_an_option_of_the_command(env: dict[str, str]) -> None:
    told = read_output(env, "kontroller", "--help")
    assert "--install-completion" in told
    assert "--show-completion" in told
