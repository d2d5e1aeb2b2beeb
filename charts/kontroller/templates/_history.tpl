{{- /* Of the jobs; a CronJob's name has 52 characters at most, and the compaction's is longer by 11. */ -}}
{{- define "kontroller.historyName" -}}
{{- $fullname := include "kontroller.fullname" . }}
{{- if gt (len $fullname) 33 }}
{{- $fullname = printf "%s-%s" ($fullname | trunc 24 | trimSuffix "-") ($fullname | sha256sum | trunc 8) }}
{{- end }}
{{- $fullname }}-history
{{- end }}

{{- define "kontroller.alarmsName" -}}
{{ include "kontroller.fullname" . }}-alarms
{{- end }}

{{- define "kontroller.reportsName" -}}
{{ include "kontroller.fullname" . }}-reports
{{- end }}

{{- /* The journals to read: those of this release's controllers, one after the other, unless a topic has them, and those that
  are named. A topic has gaps and numbers of its own, which are not to be mixed with those of the files. Takes a list: the
  root context, and the values of who reads them. */ -}}
{{- define "kontroller.journals" -}}
{{- concat (include "kontroller.ownJournals" . | fromYamlArray) ((index . 1).journals | default list) | toYaml }}
{{- end }}

{{- define "kontroller.ownJournals" -}}
{{- $root := index . 0 }}
{{- $journals := list }}
{{- if and $root.Values.controller.enabled $root.Values.controller.journal.enabled (not (index . 1).topic.name) }}
{{- $controller := include "kontroller.controllerName" $root }}
{{- $domain := include "kontroller.serviceDomain" $root }}
{{- $scheme := ternary "https" "http" (not (empty $root.Values.monitoring.http.certificateSecret)) }}
{{- range $number := until (int $root.Values.controller.replicas) }}
{{- $journals = append $journals (printf "%s://%s-%d.%s.%s:%d/journal" $scheme $controller $number $controller $domain (int $root.Values.controller.metricsPort)) }}
{{- end }}
{{- end }}
{{- toYaml $journals }}
{{- end }}

{{- /* The Secret with the token of this release's journals; empty where there is none. */ -}}
{{- define "kontroller.journalTokenSecret" -}}
{{- $journal := .Values.controller.journal }}
{{- if and $journal.token.create $journal.token.secretName }}
{{- fail "controller.journal.token: set either create or secretName, not both" }}
{{- end }}
{{- if and $journal.enabled (or $journal.token.create $journal.token.secretName) }}
{{- default (printf "%s-journal-token" (include "kontroller.controllerName" .)) $journal.token.secretName }}
{{- end }}
{{- end }}

{{- /* The tokens of a reader: a list of the journals with a token, each with the Secret that has it, and the name of the
  volume that it is on. No token goes to another journal than its own. Takes what kontroller.journals takes. */ -}}
{{- define "kontroller.shownTokens" -}}
{{- $shown := list }}
{{- $http := (index . 0).Values.monitoring.http }}
{{- $secret := default $http.tokenSecret (include "kontroller.journalTokenSecret" (index . 0)) | default "" }}
{{- if and $http.clientCaSecret (not $secret) (not (dig "certificateSecret" "" ((index . 1).journalTls | default dict))) (include "kontroller.ownJournals" . | fromYamlArray) }}
{{- fail "monitoring.http.clientCaSecret: history and alarms have no certificate to read the controllers' journals: set monitoring.http.tokenSecret or controller.journal.token, too, or the readers' journalTls.certificateSecret" }}
{{- end }}
{{- range ternary (include "kontroller.ownJournals" . | fromYamlArray) list (ne $secret "") }}
{{- $shown = append $shown (dict "journal" . "secret" $secret "volume" "journal-token") }}
{{- end }}
{{- range $index, $given := (index . 1).journalTokens }}
{{- $shown = append $shown (dict "journal" $given.journal "secret" $given.secretName "volume" (printf "journal-token-%d" $index)) }}
{{- end }}
{{- toYaml $shown }}
{{- end }}

{{- /* The Secret with the authorities that a reader trusts: its own one, or that of this release's journals; empty: the
  system's. Takes what kontroller.journals takes. */ -}}
{{- define "kontroller.journalCaSecret" -}}
{{- $own := ternary (index . 0).Values.monitoring.http.certificateSecret "" (ne (include "kontroller.ownJournals" . | fromYamlArray | len) 0) }}
{{- default $own (dig "caSecret" "" ((index . 1).journalTls | default dict)) | default "" }}
{{- end }}

{{- /* The options, mounts and volumes of a reader: tokens, certificates and caps. Take what kontroller.journals takes. */ -}}
{{- define "kontroller.tokenOptions" -}}
{{- range include "kontroller.shownTokens" . | fromYamlArray }}
- --journal-token-file={{ .journal }}=/etc/kontroller/{{ .volume }}/token
{{- end }}
{{- if include "kontroller.journalCaSecret" . }}
- --journal-ca=/etc/kontroller/journal-ca/ca.crt
{{- end }}
{{- if dig "certificateSecret" "" ((index . 1).journalTls | default dict) }}
- --journal-certificate=/etc/kontroller/journal-certificate/tls.crt
- --journal-key=/etc/kontroller/journal-certificate/tls.key
{{- end }}
{{- range $what, $bytes := (index . 1).journalCaps }}
{{- if $bytes }}
- --max-{{ $what | trimSuffix "Bytes" }}-bytes={{ int64 $bytes }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kontroller.tokenMounts" -}}
{{- $volumes := dict }}
{{- range include "kontroller.shownTokens" . | fromYamlArray }}
{{- if not (hasKey $volumes .volume) }}
{{- $_ := set $volumes .volume .secret }}
- {name: {{ .volume }}, mountPath: /etc/kontroller/{{ .volume }}, readOnly: true}
{{- end }}
{{- end }}
{{- if include "kontroller.journalCaSecret" . }}
- {name: journal-ca, mountPath: /etc/kontroller/journal-ca, readOnly: true}
{{- end }}
{{- if dig "certificateSecret" "" ((index . 1).journalTls | default dict) }}
- {name: journal-certificate, mountPath: /etc/kontroller/journal-certificate, readOnly: true}
{{- end }}
{{- end }}

{{- define "kontroller.tokenVolumes" -}}
{{- $volumes := dict }}
{{- range include "kontroller.shownTokens" . | fromYamlArray }}
{{- if not (hasKey $volumes .volume) }}
{{- $_ := set $volumes .volume .secret }}
- name: {{ .volume }}
  secret: {secretName: {{ .secret | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- with include "kontroller.journalCaSecret" . }}
- name: journal-ca
  secret: {secretName: {{ . | quote }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- with dig "certificateSecret" "" ((index . 1).journalTls | default dict) }}
- name: journal-certificate
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- /* All that a reader has as files: tokens of journals, and how the topic's brokers are secured. Take what kontroller.journals
  takes. */ -}}
{{- define "kontroller.readerMounts" -}}
{{- include "kontroller.tokenMounts" . }}
{{ include "kontroller.connectionMount" (index . 1).connectionSecrets }}
{{- end }}

{{- define "kontroller.readerVolumes" -}}
{{- include "kontroller.tokenVolumes" . }}
{{- with (index . 1).connectionSecrets }}
{{ include "kontroller.connectionVolume" (list "connection" .) }}
{{- end }}
{{- end }}

{{- /* Takes a dict: root, journals. */ -}}
{{- define "kontroller.checkHistory" -}}
{{- $history := .root.Values.history }}
{{- include "kontroller.checkReader" (list "history" $history) }}
{{- if not (or .journals $history.topic.name) }}
{{- fail "history.enabled needs a journal: set controller.enabled with controller.journal.enabled, or name some in history.journals, or a topic in history.topic" }}
{{- end }}
{{- $memory := toString (dig "limits" "memory" "" ($history.resources | default dict)) }}
{{- $needed := add 512 (mul 256 $history.cores) (include "kontroller.mebibytes" $history.driverMemory) }}
{{- if and (regexMatch "^[0-9]+[MG]i$" $memory) (lt (int (include "kontroller.mebibytes" $memory)) (int $needed)) }}
{{- fail (printf "history.resources.limits.memory is %s, which is too little for Spark with history.driverMemory %s: set it to %dMi or more" $memory $history.driverMemory $needed) }}
{{- end }}
{{- end }}

{{- /* Takes a list: the name of a reader, and its values. */ -}}
{{- define "kontroller.checkReader" -}}
{{- $reader := index . 1 }}
{{- include "kontroller.checkTopic" (list (printf "%s.topic" (index . 0)) $reader.topic) }}
{{- if and $reader.connectionSecrets (not $reader.topic.name) }}
{{- fail (printf "%s.connectionSecrets say how the brokers of a topic are secured, and journals are read by HTTP: set %s.topic, or journalTokens" (index . 0) (index . 0)) }}
{{- end }}
{{- end }}

{{- /* Takes a list: the name of the value, a topic. */ -}}
{{- define "kontroller.checkTopic" -}}
{{- $topic := index . 1 }}
{{- if ne (empty $topic.name) (empty $topic.bootstrapServers) }}
{{- fail (printf "%s.name and %s.bootstrapServers go together: set both, or neither" (index . 0) (index . 0)) }}
{{- end }}
{{- end }}

{{- /* An amount of memory such as 2g, 1500m, 2Gi or 1500Mi. */ -}}
{{- define "kontroller.mebibytes" -}}
{{- mul (regexFind "^[0-9]+" .) (ternary 1024 1 (regexMatch "^[0-9]+[gG]" .)) }}
{{- end }}

{{- /* The common part of both jobs' pods, except their containers. */ -}}
{{- define "kontroller.historyPod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "kontroller.podSettings" (list . .Values.history) | trim | nindent 0 }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: history
    persistentVolumeClaim: {claimName: {{ .Values.history.claimName | quote }}}
  {{- include "kontroller.items" (list 2 .Values.history.extraVolumes) }}
{{- end }}

{{- /* The common part of all containers of the history: Spark on the pod's own cores. It listens to nobody else. */ -}}
{{- define "kontroller.historyContainer" -}}
image: {{ include "kontroller.imageReference" (list . "history.image" .Values.history.image) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - spark-submit
  - --master=local[{{ .Values.history.cores | int }}]
  - --driver-memory={{ .Values.history.driverMemory }}
  - --conf=spark.driver.host=127.0.0.1
  - --conf=spark.driver.bindAddress=127.0.0.1
  - --conf=spark.driver.extraJavaOptions=-XX:-DontCompileHugeMethods
  - --conf=spark.sql.shuffle.partitions={{ mul 4 .Values.history.cores }}
  - /opt/spark/history.py
{{- include "kontroller.field" (list 0 "env" .Values.history.extraEnv) }}
{{- include "kontroller.containerSettings" (list . .Values.history) | trim | nindent 0 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: history, mountPath: /history}
  {{- include "kontroller.items" (list 2 .Values.history.extraVolumeMounts) }}
{{- end }}
