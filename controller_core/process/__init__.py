"""The controller as a process: its settings, and the real implementations of the seams."""
