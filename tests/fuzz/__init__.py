"""Coverage-guided fuzzing (atheris, libFuzzer) of every reader of foreign bytes.

`targets` has the readers and their allowed errors; `bounds` the memory that they may use; `one_target` is the process
that searches for new inputs; `__main__` runs it for all targets (`make fuzz`). `corpus` keeps the interesting inputs,
which the unit tests also read (`tests/unit/fuzz`), without atheris.
"""
