"""`python -m kontroller`: the `kontroller` command without an installed script."""

from kontroller.command_line import main

main(prog_name="kontroller")
