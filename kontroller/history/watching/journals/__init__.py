"""Sources of lines as they are written: folders, served journals, a topic."""
