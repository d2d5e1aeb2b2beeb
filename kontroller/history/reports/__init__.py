"""The report: the tables as one self-contained HTML page."""
