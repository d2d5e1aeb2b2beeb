"""The process that searches for inputs of one target: `python -m tests.fuzz.one_target NAME [libFuzzer's options]
FOLDER...`

Modules are instrumented when they are imported, so the targets are imported last.
"""

import itertools
import resource
import sys
from importlib import import_module
from typing import Final

import atheris

from tests.fuzz.bounds import read_within_bounds
from tests.fuzz.target import Target

LOOKED_INTO: Final = ["controller_core", "kontroller", "controller_operator", "replica_broker"]
ADDRESS_SPACE_BYTES: Final = 3 << 30
"""More raises a `MemoryError`, and so is a finding."""
_MEASURED: Final = 64
"""The memory of one of this number of inputs is measured, because measuring takes many times as long."""


def main() -> None:
    name, *options = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    with atheris.instrument_imports(include=LOOKED_INTO, enable_loader_override=False):
        target: Target = import_module(f"tests.fuzz.targets.{name}").TARGET
    turns = itertools.count()

    def read(data: bytes) -> None:
        if next(turns) % _MEASURED:
            target.read(data)
        else:
            read_within_bounds(target.read, data)

    again = f"{sys.executable} -m {__spec__.name} {name}"  # the command that libFuzzer runs to merge
    atheris.Setup([again, f"-max_len={target.most_bytes}", *options], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
