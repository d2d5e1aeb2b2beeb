"""Four ratings of a figure. Each has a sign, so that readers need no colour vision."""

from typing import Final, Literal

Tone = Literal["good", "warn", "bad", "unknown"]
SIGNS: Final[dict[Tone, str]] = {"good": "\u2713", "warn": "!", "bad": "\u2715", "unknown": "?"}
MOSTLY_KNOWN: Final = 0.9
"""The least known part of a period of which anything may be called good."""


def tone_of(ratio: float | None, *, warned_from: float = 0.999) -> Tone:
    """Return the tone of an availability without an objective."""
    return "unknown" if ratio is None else "good" if ratio >= 0.9999 else "warn" if ratio >= warned_from else "bad"


def tone_of_budget(spent: float) -> Tone:
    """Return the tone of the spent part of an error budget."""
    return "good" if spent <= 0.5 else "warn" if spent <= 1 else "bad"
