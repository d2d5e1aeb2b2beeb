"""The term: everything that operations need while this process is the controller."""
