"""What is fuzzed: something that reads bytes, with examples to begin from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of input."""

    name: str
    examples: Callable[[], Iterable[bytes]]
    """Inputs as they should be."""
    read: Callable[[bytes], None]
    """Reads any bytes. What it raises is a finding: errors that say of bytes what is wrong with them are caught in it."""
    most_bytes: int = 4096
    """How large inputs become."""

    @property
    def corpus(self) -> Path:
        """The folder of the inputs that are kept, a file each."""
        return CORPUS / self.name

    def kept(self) -> list[bytes]:
        """The inputs that are kept, and the examples."""
        return [*(path.read_bytes() for path in sorted(self.corpus.glob("*"))), *self.examples()]
