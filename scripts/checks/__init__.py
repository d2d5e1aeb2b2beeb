"""The three levels of checks: `make test`, `.ci/run` and `make nightly`, and the search for flaky tests (`make flaky`)."""
