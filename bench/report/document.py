"""Tables in a document, between `<!-- begin: NAME -->` and `<!-- end: NAME -->`, each on a line of its own.

The text between the markers is replaced, everything else is left alone. If the tables of several benchmarks share a
document, their names have a prefix: `designs/counted`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

NOT_MEASURED: Final = "Not measured in this run."
_BEGIN: Final = re.compile(r"^<!-- begin: (?:(\w+)/)?(\S+) -->$", re.MULTILINE)


class MissingTable(ValueError):
    """A document has a marker without a table, or lacks a table's marker."""


def fill_markers(document: str, tables: Mapping[str, str], *, of: str = "") -> str:
    """Return the document with these tables, which must be all of a benchmark. Raises `MissingTable`."""
    names = [name for benchmark, name in _BEGIN.findall(document) if benchmark == of]
    if set(names) != set(tables) or len(names) != len(tables):
        raise MissingTable(f"the document has markers for {names}; it must have each of {list(tables)} once")
    for name, table in tables.items():
        marked = f"{of}/{name}" if of else name
        begin, end = f"<!-- begin: {marked} -->\n", f"<!-- end: {marked} -->\n"
        before, _, rest = document.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise MissingTable(f"the table {marked} has no end: write {end.strip()} on a line of its own below it")
        document = f"{before}{begin}\n{table}\n\n{end}{after}"
    return document


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; numbers are aligned to the right."""
    body = [list(row) for row in rows]
    if not body:
        return NOT_MEASURED
    numeric = [all(re.match(r"[\d*]|$", row[index]) for row in body) for index in range(len(header))]
    rule = ["---:" if is_number else "---" for is_number in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(header), rule, *body])
