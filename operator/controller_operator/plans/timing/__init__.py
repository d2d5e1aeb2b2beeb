"""The times of runs and of windows, which follow from cron expressions."""
