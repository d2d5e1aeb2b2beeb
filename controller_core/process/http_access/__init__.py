"""Who may connect to the HTTP ports of a process, and who may read there."""
