"""What can be wrong with the place where tables are kept.

All have one policy: what is kept is as it was before, nothing was tried again, and the message says what to change. Then
the same command does what it was to do.
"""


class StoreError(Exception):
    """The tables are as they were before; the message says what to change before the command is run again."""


class StoreBusy(StoreError):
    """Somebody else changes them at this moment: wait for its end."""


class NotWritten(StoreError):
    """The place could not be read or changed: permissions, room, a disk, a network."""


class Damaged(StoreError):
    """What is there was not made by this, or has been changed by hand."""


class ChangedMeanwhile(StoreError):
    """Somebody else has changed the tables since this began: what this made of them before is not put in their place."""


class OtherFormat(StoreError):
    """The tables are kept in another way than is asked for."""
