"""The sources of history. Each module turns one kind of text into rows of the table `events`."""
