"""Makes the tables of both designs in docs/performance.md from a result file."""
