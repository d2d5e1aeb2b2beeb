{{- define "kontroller.kafkaName" -}}
{{ include "kontroller.fullname" . }}-kafka
{{- end }}

{{- /* Names all brokers at once, those that are not ready among them. */ -}}
{{- define "kontroller.kafkaBootstrap" -}}
{{ include "kontroller.kafkaName" . }}.{{ include "kontroller.serviceDomain" . }}:9092
{{- end }}

{{- /* True if a client of the brokers needs their file of properties. */ -}}
{{- define "kontroller.isKafkaSecured" -}}
{{- if ne .Values.kafka.listenerName "PLAINTEXT" }}true{{ end }}
{{- end }}

{{- /* The content of connectionVolume. */ -}}
{{- define "kontroller.propertiesFile" -}}
/etc/kontroller/connection/server.properties
{{- end }}

{{- /* The option of commands that names it; nothing without Secrets. */ -}}
{{- define "kontroller.propertiesOption" -}}
{{- if . }}--properties={{ include "kontroller.propertiesFile" . }}{{ end }}
{{- end }}

{{- /* The mount of it in a container: an entry of volumeMounts; nothing without Secrets. */ -}}
{{- define "kontroller.connectionMount" -}}
{{- if . }}- {name: connection, mountPath: /etc/kontroller/connection, readOnly: true}{{ end }}
{{- end }}

{{- /* The option by which the brokers are asked; nothing where that takes none. */ -}}
{{- define "kontroller.kafkaProperties" -}}
{{- if include "kontroller.isKafkaSecured" . }}{{ include "kontroller.propertiesOption" .Values.kafka.connectionSecrets }}{{ end }}
{{- end }}

{{- /* Secrets that together say how something is secured. Takes a list: the volume's name, and theirs, or the one that it is. */ -}}
{{- define "kontroller.connectionVolume" -}}
- name: {{ index . 0 }}
  projected:
    defaultMode: 0440
    sources:
      {{- range include "kontroller.together" (index . 1) | fromYamlArray }}
      - secret: {name: {{ . | quote }}}
      {{- end }}
{{- end }}

{{- define "kontroller.together" -}}
{{- ternary . (list .) (kindIs "slice" .) | toYaml }}
{{- end }}

{{- /* server.properties but for what is different on each broker. */ -}}
{{- define "kontroller.kafkaConfig" -}}
{{- $copies := min 3 (int .Values.kafka.replicas) }}
{{- $own := dict
  "listeners" (printf "%s://:9092" .Values.kafka.listenerName)
  "inter.broker.listener.name" .Values.kafka.listenerName
  "zookeeper.connect" (include "kontroller.kafkaZookeeper" .)
  "broker.id.generation.enable" "false"
  "log.dirs" "/var/lib/kafka/data"
}}
{{- range $setting := keys (.Values.kafka.config | default dict) }}
{{- if or (hasKey $own $setting) (has $setting (list "broker.id" "advertised.listeners" "log.dir")) }}
{{- fail (printf "kafka.config may not set %s: the chart sets it" $setting) }}
{{- end }}
{{- end }}
{{- /* replica.fetch.backoff.ms: a follower that asks a new leader too early asks again after this time, and producers with acks=all wait
for it. Kafka's default is 1000. */ -}}
{{- $defaults := dict
  "auto.create.topics.enable" "false"
  "default.replication.factor" $copies
  "min.insync.replicas" (ternary 2 1 (ge $copies 3))
  "num.partitions" 1
  "offsets.topic.replication.factor" $copies
  "replica.fetch.backoff.ms" 100
  "transaction.state.log.replication.factor" $copies
  "transaction.state.log.min.isr" (ternary 2 1 (ge $copies 3))
  "zookeeper.connection.timeout.ms" 60000
  "zookeeper.session.timeout.ms" 18000
}}
{{- include "kontroller.properties" (list "kafka.config" $defaults .Values.kafka.config $own) | trim }}
{{- end }}

{{- /* Refuses values that cannot work together. */ -}}
{{- define "kontroller.checkKafka" -}}
{{- $kafka := .Values.kafka }}
{{- if and (include "kontroller.isKafkaSecured" .) (not $kafka.connectionSecrets) }}
{{- fail (printf "kafka.listenerName is %s and no Secret secures it: name Secrets with server.properties in kafka.connectionSecrets" $kafka.listenerName) }}
{{- end }}
{{- if not $kafka.connectionSecrets }}
{{- include "kontroller.checkZookeeper" (list . "kafka" $kafka.zookeeper) }}
{{- end }}
{{- if and .Values.controller.enabled (ne $kafka.listenerName .Values.controller.listenerName) }}
{{- fail (printf "brokers look for their controller at their own listener, and kafka.listenerName is %s: set controller.listenerName=%s" $kafka.listenerName $kafka.listenerName) }}
{{- end }}
{{- if not (include "kontroller.kafkaZookeeper" .) }}
{{- fail "kafka.enabled needs a ZooKeeper: set zookeeper.enabled=true, or kafka.zookeeper to host:port[,host:port...][/chroot]; the chart cannot run brokers without ZooKeeper (Kafka 4)" }}
{{- end }}
{{- $needed := add 60 (ternary $kafka.drain.deadlineSeconds 0 $kafka.drain.enabled | int) }}
{{- if lt (int $kafka.terminationGracePeriodSeconds) (int $needed) }}
{{- fail (printf "kafka.terminationGracePeriodSeconds is %d, less than kafka.drain.deadlineSeconds and 60 s for the broker's own shutdown: set it to %d or more" (int $kafka.terminationGracePeriodSeconds) $needed) }}
{{- end }}
{{- end }}

{{- /* The address of each listener that brokers and clients receive: its own, or the pod's. A name stays when the
pod is replaced; brokers look it up at each connection, and before the pod is ready. */}}
{{- define "kontroller.advertised" -}}
{{- $controller := .Values.controller }}
{{- $first := dict "name" $controller.listenerName "port" $controller.port "advertise" $controller.advertise }}
{{- $host := printf "$(POD_NAME).%s.%s" (include "kontroller.controllerName" .) (include "kontroller.serviceDomain" .) }}
{{- $host = ternary $host "$(POD_IP)" (eq $controller.advertiseBy "name") }}
{{- $told := list }}
{{- range prepend ($controller.moreListeners | default list) $first }}
{{- $told = append $told (printf "%s://%s" .name (.advertise | default (printf "%s:%d" $host (int .port)))) }}
{{- end }}
{{- join "," $told }}
{{- end }}

{{- /* Takes the values of the controller. See wire/limits/memory.py. */ -}}
{{- define "kontroller.checkMemory" -}}
{{- $limits := .limits | default dict }}
{{- $memory := toString (dig "limits" "memory" "" (.resources | default dict)) }}
{{- $connections := div (add (mul (int ($limits.maxConnections | default 5000)) 128) 1023) 1024 }}
{{- $requests := div (add (int64 ($limits.queuedMaxRequestBytes | default 201326592)) 1048575) 1048576 }}
{{- $needed := add 168 $connections $requests }}
{{- if and (regexMatch "^[0-9]+[MG]i$" $memory) (lt (int (include "kontroller.mebibytes" $memory)) (int $needed)) }}
{{- fail (printf "controller.resources.limits.memory is %s, which is too little for controller.limits, maxConnections and queuedMaxRequestBytes: set it to %dMi or more, or lower them" $memory $needed) }}
{{- end }}
{{- end }}

{{- define "kontroller.checkController" -}}
{{- $controller := .Values.controller }}
{{- include "kontroller.checkMemory" $controller }}
{{- if not $controller.connectionSecrets }}
{{- if has $controller.listenerName (list "SSL" "SASL_PLAINTEXT" "SASL_SSL") }}
{{- fail (printf "controller.listenerName is %s and no Secret secures it: name Secrets with server.properties in controller.connectionSecrets" $controller.listenerName) }}
{{- end }}
{{- include "kontroller.checkZookeeper" (list . "controller" $controller.zookeeper) }}
{{- end }}
{{- $protocols := list $controller.listenerName }}
{{- range $controller.moreListeners }}
{{- $protocols = append $protocols .name }}
{{- end }}
{{- if and (not $controller.access.adminCidrs) (or (not $controller.connectionSecrets) (has "PLAINTEXT" $protocols)) }}
{{- fail "controller.access.adminCidrs is empty, and callers do not log in: every pod could change the cluster. Name the networks of the operator's pods and of administrators, for example controller.access.adminCidrs={10.244.0.0/16}, or require logins with controller.listenerName and controller.connectionSecrets" }}
{{- end }}
{{- include "kontroller.checkPorts" (dict "controller.port" $controller.port "controller.metricsPort" $controller.metricsPort) }}
{{- $ports := list (int $controller.port) (int $controller.metricsPort) }}
{{- $names := list $controller.listenerName }}
{{- range $controller.moreListeners }}
{{- if or (has (int .port) $ports) (has .name $names) }}
{{- fail (printf "controller.moreListeners: %s at port %d has the name or the port of another listener, or the port of the metrics" .name (int .port)) }}
{{- end }}
{{- if and .advertise (gt (int $controller.replicas) 1) }}
{{- fail "controller.moreListeners: advertise is one address and there are several controllers: leave it out, or set controller.replicas=1" }}
{{- end }}
{{- $ports = append $ports (int .port) }}
{{- $names = append $names .name }}
{{- end }}
{{- range concat $names (list $controller.controlPlaneListener $controller.clientListener) | compact }}
{{- if has . $controller.hideFrom }}
{{- fail (printf "controller.hideFrom names %s, at which brokers or clients find the controller: name other listeners of the brokers" .) }}
{{- end }}
{{- end }}
{{- if and $controller.clientListener $controller.moreListeners }}
{{- fail "controller.clientListener is for one listener that serves all: with controller.moreListeners each has its own address" }}
{{- end }}
{{- if not (include "kontroller.controllerZookeeper" .) }}
{{- fail "controller.enabled needs a ZooKeeper: set controller.zookeeper to the brokers' zookeeper.connect, host:port[,host:port...][/chroot], or zookeeper.enabled=true; a cluster without one (Kafka 4) has its own controllers" }}
{{- end }}
{{- if and $controller.advertise (gt (int $controller.replicas) 1) }}
{{- fail "controller.advertise is one address and there are several controllers: leave it empty, or set controller.replicas=1" }}
{{- end }}
{{- $lowest := sub (add1 $controller.id) $controller.replicas | int }}
{{- if lt $lowest 0 }}
{{- fail (printf "controller.id is %d, too low for %d controllers that count down from it" (int $controller.id) (int $controller.replicas)) }}
{{- end }}
{{- if .Values.kafka.enabled }}
{{- $first := int .Values.kafka.firstBrokerId }}
{{- $last := sub (add $first .Values.kafka.replicas) 1 | int }}
{{- if and (le $lowest $last) (ge (int $controller.id) $first) }}
{{- fail (printf "the controllers' ids %d to %d and the brokers' ids %d to %d overlap: change controller.id or kafka.firstBrokerId" $lowest (int $controller.id) $first $last) }}
{{- end }}
{{- end }}
{{- end }}
