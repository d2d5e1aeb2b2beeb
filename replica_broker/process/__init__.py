"""The broker as a process: its settings, the assembly of its parts, its start and its end."""
