#!/bin/sh
# Fetches the jars that the folder $1 names in pom.xml into $2, and ends with an error unless they are, one for one,
# those of its jars.sha256. Only for Containerfiles: elsewhere devcluster/building/jars.py does the same.
set -eu

mvn -q -B --strict-checksums -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2"
cd "$2"
sha256sum --check --quiet --strict "$1/jars.sha256"
if [ "$(find . -name '*.jar' | wc -l)" != "$(wc -l <"$1/jars.sha256")" ]; then
    echo "$1/pom.xml brings jars that jars.sha256 beside it does not name" >&2
    exit 1
fi
