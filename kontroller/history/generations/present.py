"""The present generation of a store, protection of older ones that are read, and removal of those that are not."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from kontroller.history.generations.errors import NotWritten
from kontroller.history.generations.folders import Folders
from kontroller.history.generations.generation import (
    FOLDER,
    NOTHING,
    Generation,
    Part,
    file_of,
    generation_of,
    is_left_over,
    is_of,
    numbers_in,
    write_of,
)
from kontroller.history.generations.locks import find_local_folder, read_lock, removal_lock


def find_newest(folders: Folders) -> Generation:
    """Return the newest generation. Raises `StoreError`."""
    while numbers := _numbers(folders):
        newest = _read_if_there(folders, numbers[-1])
        # Missing: another command has made newer ones since they were listed, and has removed this one.
        if newest is not None:
            return newest
    return NOTHING


def is_newest(folders: Folders, generation: Generation) -> bool:
    return max(_numbers(folders), default=NOTHING.number) == generation.number


@contextmanager
def keep_generation(folders: Folders, generation: Generation) -> Iterator[bool]:
    """Keep a generation while the block runs, if locks are available. Yields False if it does not exist any more."""
    here = find_local_folder(folders.location)
    if here is None or generation.number == NOTHING.number:
        yield True
        return
    with read_lock(here / generation.file) as is_there:
        yield is_there


def find_previous(folders: Folders, generation: Generation) -> Generation:
    """Return the newest generation that is older than this one and still exists. Raises `StoreError`."""
    older = [number for number in _numbers(folders) if number < generation.number]
    return (_read_if_there(folders, older[-1]) if older else None) or NOTHING


def remove_what_is_left_of_others(
    folders: Folders, present: Generation, recorded: Collection[str] = ()
) -> frozenset[tuple[str, Part]]:
    """Remove older generations that nobody reads, the parts that only they have, and the parts of failed changes.

    Return the parts that are left: those of the present generation and of generations that are being read. An
    interrupted removal is repeated, because a generation's file is removed last. Raises `StoreError`.

    `recorded`: the tables whose Delta log records removed files; the log removes them."""
    used = set(present.all_parts())
    with ExitStack() as locks:
        old = []
        for number in _numbers(folders):
            generation = _read_if_there(folders, number) if number < present.number else None
            if generation is None:
                continue
            if locks.enter_context(_is_unread(folders, generation)):
                old.append(generation)
            else:
                used |= generation.all_parts()
        for generation in old:
            for table, part in sorted(generation.all_parts() - used):
                if table not in recorded:
                    folders.remove(f"{table}/{part}")
            # Last, because without this file nobody would find the parts again that are still to be removed.
            folders.remove(generation.file)
    _remove_unused_writes(folders, present, {(table, write_of(part)) for table, part in used}, recorded)
    return frozenset(used)


def _remove_unused_writes(
    folders: Folders, present: Generation, used: set[tuple[str, str]], recorded: Collection[str]
) -> None:
    """Remove parts of writes that no generation has.

    For a recorded table only the writes for the present generation can be such. Older ones were removed before it was
    made, and everything else has been in a generation, so its log removes it."""
    for table in folders.names(""):
        if table == FOLDER:
            continue
        for write in folders.names(table):
            is_unused = (table, write) not in used and is_left_over(write, present.number)
            if is_unused and (table not in recorded or is_of(write, present.number)):
                folders.remove(f"{table}/{write}")


@contextmanager
def _is_unread(folders: Folders, generation: Generation) -> Iterator[bool]:
    here = find_local_folder(folders.location)
    if here is None:
        yield True
        return
    with removal_lock(here / generation.file) as is_unread:
        yield is_unread


def _numbers(folders: Folders) -> list[int]:
    return numbers_in(folders.names(FOLDER))


def _read_if_there(folders: Folders, number: int) -> Generation | None:
    """Return a generation that was listed, or None if another command has removed it since."""
    file = file_of(number)
    try:
        text = folders.read(file)
    except NotWritten:
        if folders.exists(file):
            raise
        return None
    return generation_of(text, folders.resolve(file))
