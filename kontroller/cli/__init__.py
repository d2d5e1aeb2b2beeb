"""The subcommands of `kontroller`, one module each; none imports what it does before it runs."""
