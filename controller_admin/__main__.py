"""`python -m controller_admin`: the `kontroller` command without an installed script."""

from controller_admin.command_line import main

main(prog_name="kontroller")
