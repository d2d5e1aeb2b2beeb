"""`python -m replica_broker`: runs the `kontroller-broker` command without an installed script."""

from replica_broker.cli.command_line import main

main(prog_name="kontroller-broker")
