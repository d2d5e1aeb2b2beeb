"""The state of a store at one moment: the folders of its tables, the locks on them, and the removal of older states."""
