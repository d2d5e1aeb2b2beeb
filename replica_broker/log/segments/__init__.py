"""The files of one log: segments, each with its indexes, how they are read, cut, and put in order after an unclean end."""
