"""Where history comes from: each module turns one kind of text into rows of the table `events`."""
