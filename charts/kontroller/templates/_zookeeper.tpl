{{- define "kontroller.zookeeperName" -}}
{{ include "kontroller.fullname" . }}-zookeeper
{{- end }}

{{- define "kontroller.zookeeperPort" -}}
{{- ternary 2181 2281 (empty .Values.zookeeper.tls.secretName) }}
{{- end }}

{{- /* The servers of the chart's own ensemble, with the chroot of its brokers. */ -}}
{{- define "kontroller.ownZookeeper" -}}
{{- $name := include "kontroller.zookeeperName" . }}
{{- $servers := list }}
{{- range until (int .Values.zookeeper.replicas) }}
{{- $servers = append $servers (printf "%s-%d.%s.%s:%s" $name . $name (include "kontroller.serviceDomain" $) (include "kontroller.zookeeperPort" $)) }}
{{- end }}
{{- join "," $servers }}/kafka
{{- end }}

{{- /* The ZooKeeper of the controller; empty if no value names one. */ -}}
{{- define "kontroller.controllerZookeeper" -}}
{{- if .Values.controller.zookeeper }}
{{- .Values.controller.zookeeper }}
{{- else if .Values.zookeeper.enabled }}
{{- include "kontroller.ownZookeeper" . }}
{{- else if .Values.kafka.enabled }}
{{- .Values.kafka.zookeeper }}
{{- end }}
{{- end }}

{{- /* The ZooKeeper of the brokers; empty if no value names one. */ -}}
{{- define "kontroller.kafkaZookeeper" -}}
{{- if .Values.kafka.zookeeper }}
{{- .Values.kafka.zookeeper }}
{{- else if .Values.zookeeper.enabled }}
{{- include "kontroller.ownZookeeper" . }}
{{- else }}
{{- .Values.controller.zookeeper }}
{{- end }}
{{- end }}

{{- /* Refuses a client without Secrets of a ZooKeeper that requires certificates. Takes a list: the root context, who connects, and to
which ZooKeeper that is not the chart's. */ -}}
{{- define "kontroller.checkZookeeper" -}}
{{- $zookeeper := (index . 0).Values.zookeeper }}
{{- if and $zookeeper.enabled $zookeeper.tls.secretName (not (index . 2)) }}
{{- fail (printf "zookeeper.tls.secretName makes ZooKeeper require certificates: name Secrets in %s.connectionSecrets, with zookeeper.ssl.* in their server.properties" (index . 1)) }}
{{- end }}
{{- end }}

{{- define "kontroller.zookeeperConfig" -}}
{{- $name := include "kontroller.zookeeperName" . }}
{{- $own := dict
  "dataDir" "/var/lib/zookeeper/data"
  "clientPort" 2181
}}
{{- $tls := dict }}
{{- if .Values.zookeeper.tls.secretName }}
{{- /* The port without encryption serves only the probes of the pod itself. */ -}}
{{- $_ := set $own "clientPortAddress" "127.0.0.1" }}
{{- $_ := set $own "secureClientPort" 2281 }}
{{- $tls = dict "serverCnxnFactory" "org.apache.zookeeper.server.NettyServerCnxnFactory" "ssl.clientAuth" "need" "sslQuorum" "true" }}
{{- range $peers := list "ssl" "ssl.quorum" }}
{{- $_ := set $tls (printf "%s.keyStore.location" $peers) "/etc/zookeeper-tls/tls-combined.pem" }}
{{- $_ := set $tls (printf "%s.keyStore.type" $peers) "PEM" }}
{{- $_ := set $tls (printf "%s.trustStore.location" $peers) "/etc/zookeeper-tls/ca.crt" }}
{{- $_ := set $tls (printf "%s.trustStore.type" $peers) "PEM" }}
{{- end }}
{{- end }}
{{- if gt (int .Values.zookeeper.replicas) 1 }}
{{- range until (int .Values.zookeeper.replicas) }}
{{- $_ := set $own (printf "server.%d" (add1 .)) (printf "%s-%d.%s.%s:2888:3888" $name . $name (include "kontroller.serviceDomain" $)) }}
{{- end }}
{{- end }}
{{- range $setting := keys (.Values.zookeeper.config | default dict) }}
{{- if or (hasKey $own $setting) (hasPrefix "server." $setting) }}
{{- fail (printf "zookeeper.config may not set %s: the chart sets it" $setting) }}
{{- end }}
{{- end }}
{{- $defaults := dict
  "tickTime" 2000
  "initLimit" 10
  "syncLimit" 5
  "maxSessionTimeout" 60000
  "maxClientCnxns" 0
  "admin.enableServer" "false"
  "4lw.commands.whitelist" "srvr, ruok, mntr"
  "autopurge.snapRetainCount" 3
  "autopurge.purgeInterval" 24
  "quorumListenOnAllIPs" "true"
}}
{{- include "kontroller.properties" (list "zookeeper.config" $defaults $tls .Values.zookeeper.config $own) | trim }}
{{- end }}

{{- /* For the JVMs of servers and brokers, where it is another than ZooKeeper's own: brokers refuse answers that are larger. It stands
in front of what extraEnv says in KAFKA_OPTS. */ -}}
{{- define "kontroller.juteMaxbufferOfJava" -}}
{{- if ne (int64 .Values.zookeeper.juteMaxbufferBytes) 1048575 -}}
-Djute.maxbuffer={{ int64 .Values.zookeeper.juteMaxbufferBytes }}{{ " " }}
{{- end }}
{{- end }}
