"""Coverage-guided fuzzing (atheris, libFuzzer) of everything that reads bytes which somebody else wrote.

`targets` says what is read, and what may be said of it; `bounds` how much memory that may take; `one_target` is the process
that looks for new inputs; `__main__` runs it for all targets (`make fuzz`). What was found worth keeping is in `corpus`,
and read again by the unit tests (`tests/unit/fuzz`), without atheris.
"""
