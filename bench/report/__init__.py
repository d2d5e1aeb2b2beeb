"""From a result file to the tables and plots of docs/performance.md."""
