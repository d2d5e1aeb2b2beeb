"""Writes kontroller/history/folding/duckdb.sql, the definitions of the fold's tables as SQL for DuckDB.

python -m scripts.duckdb_sql [FILE]
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kontroller.history.engine.activation import activate
from kontroller.history.engine.translation import translate_kind

FILE: Final = Path(__file__).parents[2] / "kontroller" / "history" / "folding" / "duckdb.sql"
_HEAD: Final = "Generated from kontroller/history/transforms by `make sql`: change these instead.\n"


def compile_definitions() -> str:
    """Return the content of the file. Afterwards PySpark's functions are of no use in this process."""
    activate()
    # These import the names that were replaced.
    from kontroller.history.engine.session import open_session
    from kontroller.history.folding.definitions import DEFINITIONS

    texts = [_HEAD]
    for definition in DEFINITIONS:
        with open_session(cores=1, memory="100m") as session:
            make: Callable[..., Any] = definition.make
            for table in definition.reads:
                columns = ", ".join(f"{each.name} {translate_kind(each.dataType)}" for each in table.schema)
                session.database.execute(f"create table {table.name} ({columns})")
            rows = make(*(session.name_rows(table.name, table.schema.fieldNames()) for table in definition.reads))
            columns = ", ".join(
                f"cast({each.name} as {translate_kind(each.dataType)}) as {each.name}" for each in definition.schema
            )
            query = session.steps.query(rows.name, f"select {columns} from", is_inlined=True)
            texts.append(f"{definition.name}\n{query}\n")
    return "".join(f"-- {text}" for text in texts)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).write_text(compile_definitions())
