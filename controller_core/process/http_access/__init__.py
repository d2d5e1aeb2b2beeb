"""The access to the HTTP ports of a process: places for connections, certificates and tokens."""
