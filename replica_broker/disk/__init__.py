"""The file system behind an interface, so that tests can simulate a full disk, an I/O error or a crash."""
