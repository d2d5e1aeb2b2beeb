"""Compiles the definitions of the history's tables to SQL for DuckDB."""
