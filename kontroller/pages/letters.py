"""Letters that a reader sees."""

import unicodedata


def visible(text: str) -> str:
    """Replace invisible characters, and those that reverse the direction of the text."""
    return "".join("\ufffd" if unicodedata.category(letter) in {"Cc", "Cf", "Cs"} else letter for letter in text)
