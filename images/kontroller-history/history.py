"""`kontroller history` as spark-submit wants a program: a file whose name ends in .py."""

import sys

from kontroller.command_line import main

main(["history", *sys.argv[1:]], prog_name="kontroller")
