#!/bin/sh
# Makes the wheels of what the lock file locks/$1.txt of /source names, and of the project, in /wheels: nothing but what
# has one of its hashes, also what builds the wheels. Only for Containerfiles: elsewhere devcluster/images/wheels.py does the same.
set -eu

python3 -m venv /build
pip="/build/bin/pip --disable-pip-version-check --no-cache-dir"
$pip install --quiet --require-hashes -r /source/locks/build.txt
$pip wheel --no-build-isolation --no-deps --require-hashes --wheel-dir /wheels -r "/source/locks/$1.txt"
$pip wheel --no-build-isolation --no-deps --wheel-dir /wheels /source
