"""Requests to a cluster's controller and the handling of their answers: a module for each kind of request."""
