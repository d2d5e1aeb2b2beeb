"""What is measured and on what: the data, both controllers, their servers, the machine."""
