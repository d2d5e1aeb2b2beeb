"""Makes the tables and plots of docs/performance.md from a result file."""
