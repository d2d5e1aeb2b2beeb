"""From a result file to the tables of both designs in docs/performance.md."""
