"""Readers of the files in which other tools declare topics: one for each format, found by the file's content."""
