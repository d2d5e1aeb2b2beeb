#!/bin/sh
# Makes Kafka's home /opt/kafka but for the jars: from the folder $1, the logging configurations, kafka-run-class.sh,
# and one script for each line of the table `commands`, there or in the file $2.
set -eu

source=$1
commands=${2:-$1/commands}
home=/opt/kafka
mkdir -p "$home/bin" "$home/config"
cp "$source"/*-log4j.properties "$home/config"
cp "$source/kafka-run-class.sh" "$home/bin"

while read -r name command; do
    case $name in '' | '#'*) continue ;; esac
    printf '#!/bin/sh\nexec %s/bin/kafka-run-class.sh %s "$@"\n' "$home" "$command" >"$home/bin/$name.sh"
done <"$commands"
chmod 755 "$home"/bin/*.sh
chmod 644 "$home"/config/*
