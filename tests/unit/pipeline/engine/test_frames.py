"""DuckDB's data frames have columns as attributes, except for the names of PySpark's methods."""

from kontroller.history.engine.columns import Column
from kontroller.history.engine.session import open_session


def test_a_missing_method_of_pyspark_is_no_column() -> None:
    with open_session(cores=1, memory="100m") as session:
        rows = session.createDataFrame([("a",)], "name string")
        assert isinstance(rows.name_of_a_column, Column)
        assert not any(hasattr(rows, name) for name in ("isEmpty", "crossJoin"))
