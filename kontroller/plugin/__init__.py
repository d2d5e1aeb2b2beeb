"""`kubectl kontroller`: what the resources say, on one screen, and the few things that are done to them by hand."""
