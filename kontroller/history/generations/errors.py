"""Errors of the place that keeps the tables.

All share one policy: the tables are as they were before, nothing was retried, and the message says what to change.
After that the same command succeeds.
"""


class StoreError(Exception):
    """The tables are as they were before. The message says what to change before the command is run again."""


class StoreBusy(StoreError):
    """Another process is changing the tables: wait until it ends."""


class NotWritten(StoreError):
    """The place could not be read or written: permissions, free space, a disk, a network."""


class Damaged(StoreError):
    """The files were not made by Kontroller, or somebody has changed them by hand."""


class ChangedMeanwhile(StoreError):
    """Another command has changed the tables since this one began, so the result of this one is discarded."""


class OtherFormat(StoreError):
    """The tables are kept in another format than the one that is asked for."""
