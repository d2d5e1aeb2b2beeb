"""The subcommands of `kontroller`, one module each. A module imports its implementation only when its command runs."""
