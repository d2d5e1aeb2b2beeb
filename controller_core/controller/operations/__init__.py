"""The procedures of the specification, one module for each kind of event or request."""
