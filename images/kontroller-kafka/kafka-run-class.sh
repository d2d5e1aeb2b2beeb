#!/bin/sh
# kafka-run-class.sh CLASS [ARGUMENT...]: runs a class of Kafka or ZooKeeper as this very process, so that a server
# is its container's first process and gets its signals. Like Kafka's own script it honours KAFKA_HEAP_OPTS,
# KAFKA_JVM_PERFORMANCE_OPTS, KAFKA_LOG4J_OPTS and KAFKA_OPTS. Nothing is written outside of /tmp.
set -eu

if [ $# = 0 ]; then
    echo "usage: $0 CLASS [ARGUMENT...]" >&2
    exit 2
fi

home=/opt/kafka
case $1 in
kafka.Kafka | *.QuorumPeerMain)
    # A share of the container's memory: the rest is the page cache's, which Kafka reads from.
    heap='-XX:InitialRAMPercentage=25 -XX:MaxRAMPercentage=50'
    performance='-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent'
    logging=$home/config/server-log4j.properties
    ;;
*)
    heap=-Xmx256m
    # A short life: the first compiler tier and the serial collector start fastest.
    performance='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
    logging=$home/config/tool-log4j.properties
    ;;
esac

# The variables are lists of options: they must be split.
# shellcheck disable=SC2086
exec java -XX:-UsePerfData -Djava.awt.headless=true \
    ${KAFKA_HEAP_OPTS:-$heap} \
    ${KAFKA_JVM_PERFORMANCE_OPTS:-$performance} \
    ${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:$logging} \
    ${KAFKA_OPTS:-} \
    -cp "$home/libs/*${CLASSPATH:+:$CLASSPATH}" "$@"
