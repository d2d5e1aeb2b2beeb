"""Reads a Containerfile's packages and settings, so that the build without an engine makes the same image.

The steps are scripts that both builds run. This supports the instructions that the project's own Containerfiles use,
and refuses other instructions in the last stage.
"""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

_WITHOUT_SETTINGS = {"ARG", "FROM", "RUN", "COPY"}
_INSTALL = re.compile(r"install-packages\.sh ([a-z0-9.+ -]+)")


class UnknownInstruction(Exception):
    """A Containerfile's last stage has an instruction that this build does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """The settings that an engine applies to a container of the image."""

    user: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)

    def make_config(self) -> dict[str, object]:
        """Return the `config` object of an image's configuration."""
        return {
            "User": self.user,
            "Env": [f"{name}={value}" for name, value in self.environment.items()],
            "Entrypoint": self.entrypoint or None,
            "Labels": self.labels,
        }


def settings(containerfile: Path, base: ImageSettings | None = None) -> ImageSettings:
    """Return the settings of the last stage, on top of those of its base image.

    Raises UnknownInstruction.
    """
    base = base or ImageSettings()
    environment, labels = dict(base.environment), dict(base.labels)
    user, entrypoint = base.user, base.entrypoint
    for instruction, argument in _last_stage(containerfile.read_text()):
        match instruction:
            case "ENV":
                environment |= {name: _expand_variables(value, environment) for name, value in _pairs(argument)}
            case "LABEL":
                labels |= dict(_pairs(argument))
            case "USER":
                user = argument
            case "ENTRYPOINT":
                entrypoint = json.loads(argument)
            case _ if instruction not in _WITHOUT_SETTINGS:
                raise UnknownInstruction(f"{containerfile}: teach devcluster/images the instruction {instruction}")
    return ImageSettings(user=user, environment=environment, entrypoint=entrypoint, labels=labels)


def packages(containerfile: Path) -> list[str]:
    """Return the Debian packages that the first stage installs."""
    found = _INSTALL.search(_join_lines(containerfile.read_text()))
    if found is None:
        raise UnknownInstruction(f"{containerfile}: no stage runs install-packages.sh")
    return found[1].split()


def _last_stage(text: str) -> list[tuple[str, str]]:
    lines = [line for line in _join_lines(text).splitlines() if line.strip() and not line.startswith("#")]
    split = [(instruction, argument.strip()) for instruction, _, argument in (line.partition(" ") for line in lines)]
    last = max(index for index, (instruction, _) in enumerate(split) if instruction == "FROM")
    return split[last:]


def _join_lines(text: str) -> str:
    return re.sub(r"\\\n\s*", "", text)


def _pairs(argument: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in shlex.split(argument))]


def _expand_variables(value: str, environment: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda name: environment.get(name[1], ""), value)
