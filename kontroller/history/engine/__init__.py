"""PySpark's data frames on DuckDB, for small histories: in this process, and without Java."""
