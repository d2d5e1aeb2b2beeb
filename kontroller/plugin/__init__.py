"""`kubectl kontroller`: one-screen views of the resources, and the few changes that people make by hand."""
