"""Prints the changes of leaders that a journal has recorded, and the leaders at its end.

python examples/library/read_journal.py examples/journal
"""

import sys

from kontroller import Journal, Record


def main(folder: str) -> None:
    journal = Journal(folder)
    for entry in journal.read():
        if isinstance(entry, Record) and entry.line.kind == "leadership" and entry.line.delta is not None:
            changed = entry.line.delta.model_dump(exclude_none=True)
            print(f"{entry.line.topic}-{entry.line.partition}: {changed} because of {entry.line.cause}")
    folded = journal.fold()
    if folded.image is None:
        print("the journal has no snapshot, so the state at its end is unknown")
        return
    for (topic, partition), state in sorted(folded.image.leaderships.items()):
        print(f"{topic}-{partition} is led by {state['leader']}")


if __name__ == "__main__":
    main(sys.argv[1])
