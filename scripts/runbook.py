"""Writes charts/kontroller/runbook.yaml, the texts of the chart's alerts, from docs/operations.md."""

import re
from pathlib import Path
from typing import Final

import yaml

_ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = _ROOT / "docs" / "operations.md"
FILE: Final = _ROOT / "charts" / "kontroller" / "runbook.yaml"
_HEAD: Final = "# Generated from docs/operations.md by `make runbook`: change that instead.\n"
_SECTION: Final = re.compile(r"^### (Kontroller\w+)\n(.+?)(?=^##)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^]]+)\]\(([^)#]*)((?:#[^)]+)?)\)")


def runbook(page: str) -> dict[str, str]:
    """Return the section about each alert as plain text."""
    return {alert: _plain(section.strip()) for alert, section in _SECTION.findall(page)}


def file() -> str:
    """Return the content of the chart's file."""
    return _HEAD + yaml.dump(runbook(SOURCE.read_text()), Dumper=_Readable, width=10_000)


def _plain(text: str) -> str:
    """Replace links by names of pages, because readers of an alert cannot follow them."""
    named = _LINK.sub(lambda link: f"{link[1]} (docs/{link[2] or SOURCE.name}{link[3]})", text)
    return named.replace("**", "")


class _Readable(yaml.SafeDumper):
    """Writes texts as blocks, so that diffs show single lines."""


_Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)

if __name__ == "__main__":
    FILE.write_text(file())
