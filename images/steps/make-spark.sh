#!/bin/sh
# Makes Spark's home /opt/spark where Spark and its operator look for it: links to what pip installs into
# /opt/kontroller, and from the folder $1 what a container starts with and the program for spark-submit. The jars of the folder
# $2, with which Spark reads from Kafka, come among its own, where its drivers and executors look.
set -eu

source=$1
home=/opt/spark
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib", "venv", {"base": "/opt/kontroller"}))')
# Pods of Spark on Kubernetes have their configuration mounted at conf.
mkdir -p "$home/conf"
ln -s "$library/pyspark/bin" "$library/pyspark/jars" "$home"
ln -s "$library/kontroller/history/conf/log4j2.properties" "$home/conf"
cp "$source/entrypoint.sh" "$source/history.py" "$home"
mkdir -p "$library/pyspark/jars"
install -m 644 "$2"/*.jar "$library/pyspark/jars"
chmod 755 "$home/entrypoint.sh"
chmod 644 "$home/history.py"
