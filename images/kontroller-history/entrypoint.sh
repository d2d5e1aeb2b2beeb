#!/bin/bash
# What a container of the image does. Spark on Kubernetes starts pods of it as `driver ARGUMENTS...` and `executor`,
# with the rest in variables; whatever else it is given is for `kontroller history`.
set -euo pipefail

case "${1:-}" in
    driver)
        shift
        exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
            --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
        ;;
    executor)
        # What an application distributes, such as jars, comes into the working folder.
        cd /tmp
        options=()
        for name in "${!SPARK_JAVA_OPT_@}"; do
            options+=("${!name}")
        done
        exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --app-id "$SPARK_APPLICATION_ID" --driver-url "$SPARK_DRIVER_URL" \
            --executor-id "$SPARK_EXECUTOR_ID" --podName "$SPARK_EXECUTOR_POD_NAME" --hostname "$SPARK_EXECUTOR_POD_IP" \
            --cores "$SPARK_EXECUTOR_CORES" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
        ;;
    *)
        exec kontroller history "$@"
        ;;
esac
