"""The controller as a process: its settings, and how the seams are put together for real."""
