"""The broker as a process: its settings, how it is put together for real, and how it starts and ends."""
