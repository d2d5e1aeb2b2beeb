"""Which generation is the present one, who reads an older one, and the end of those that nobody reads."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

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
from kontroller.history.generations.locks import on_this_machine, read_lock, removal_lock


def newest(folders: Folders) -> Generation:
    """Raises `StoreError`."""
    numbers = numbers_in(folders.names(FOLDER))
    return _generation(folders, numbers[-1]) if numbers else NOTHING


@contextmanager
def being_read(folders: Folders, generation: Generation) -> Iterator[bool]:
    """Keeps a generation while the block runs, where there are locks; false if it is there no more."""
    here = on_this_machine(folders.location)
    if here is None or generation.number == NOTHING.number:
        yield True
        return
    with read_lock(here / generation.file) as is_there:
        yield is_there


def before(folders: Folders, generation: Generation) -> Generation:
    """The newest of those that are older and there still. Raises `StoreError`."""
    older = [number for number in numbers_in(folders.names(FOLDER)) if number < generation.number]
    return _generation(folders, older[-1]) if older else NOTHING


def remove_what_is_left_of_others(
    folders: Folders, present: Generation, recorded: Collection[str] = ()
) -> frozenset[tuple[str, Part]]:
    """Removes the older generations that nobody reads, what only they have, and what a change that failed has
    written. Where it was interrupted it is done again: a generation's file goes last. Returns what is left: the parts that
    the present one has, or one that is read. Raises `StoreError`.

    `recorded`: tables of which somebody else records what left them, and removes it."""
    used = set(present.all_parts())
    with ExitStack() as locks:
        old = []
        for number in numbers_in(folders.names(FOLDER)):
            if number < present.number:
                generation = _generation(folders, number)
                if locks.enter_context(_is_unread(folders, generation)):
                    old.append(generation)
                else:
                    used |= generation.all_parts()
        for generation in old:
            for table, part in sorted(generation.all_parts() - used):
                if table not in recorded:
                    folders.remove(f"{table}/{part}")
            folders.remove(generation.file)
    _remove_unused_writes(folders, present, {(table, write_of(part)) for table, part in used}, recorded)
    return frozenset(used)


def _remove_unused_writes(
    folders: Folders, present: Generation, used: set[tuple[str, str]], recorded: Collection[str]
) -> None:
    """Of a recorded table those alone that came too late for the present generation: older ones were removed before this
    was made, and what else is there has been in a generation."""
    for table in folders.names(""):
        if table == FOLDER:
            continue
        for write in folders.names(table):
            is_unused = (table, write) not in used and is_left_over(write, present.number)
            if is_unused and (table not in recorded or is_of(write, present.number)):
                folders.remove(f"{table}/{write}")


@contextmanager
def _is_unread(folders: Folders, generation: Generation) -> Iterator[bool]:
    here = on_this_machine(folders.location)
    if here is None:
        yield True
        return
    with removal_lock(here / generation.file) as is_unread:
        yield is_unread


def _generation(folders: Folders, number: int) -> Generation:
    file = file_of(number)
    return generation_of(folders.read(file), folders.at(file))
