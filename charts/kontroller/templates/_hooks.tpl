{{- /* A job of Helm's: it runs one command of the `kontroller` image with a service account of its own.
Takes a dict: root, name, component, hooks, serviceAccount, deadline (seconds), args, retries (3 when left out). */ -}}
{{- define "kontroller.job" -}}
{{- $root := .root -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace | quote }}
  {{- include "kontroller.metadata" (dict "root" $root "component" .component "annotations" (include "kontroller.hook" (list .hooks 1) | fromYaml)) | nindent 2 }}
spec:
  backoffLimit: {{ ternary .retries 3 (hasKey . "retries") }}
  activeDeadlineSeconds: {{ .deadline }}
  template:
    metadata:
      {{- include "kontroller.podMetadata" (dict "root" $root "component" .component "workload" dict) | nindent 6 }}
    spec:
      {{- include "kontroller.commandPod" . | nindent 6 }}
{{- end }}

{{- /* A pod that `helm test` runs. Takes a dict: root, name, component, hooks, serviceAccount, args. */ -}}
{{- define "kontroller.testPod" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  {{- include "kontroller.metadata" (dict "root" .root "component" .component "annotations" (include "kontroller.hook" (list .hooks 1) | fromYaml)) | nindent 2 }}
spec:
  {{- include "kontroller.commandPod" . | nindent 2 }}
{{- end }}

{{- /* The spec of a pod that runs one command to its end. Takes a dict: root, component, serviceAccount (none: no token), args,
connection (Secrets that say how the brokers are secured, where they are). */ -}}
{{- define "kontroller.commandPod" -}}
{{- $root := .root -}}
{{- if .serviceAccount -}}
serviceAccountName: {{ .serviceAccount }}
automountServiceAccountToken: true
{{- else -}}
automountServiceAccountToken: false
{{- end }}
enableServiceLinks: false
restartPolicy: Never
{{- include "kontroller.podSettings" (list $root $root.Values.operator) | trim | nindent 0 }}
containers:
  - name: {{ .component }}
    image: {{ include "kontroller.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    {{- if .connection }}
    # The folder in which a client finds files that are named without one.
    workingDir: /etc/kontroller/connection
    {{- end }}
    command: [kontroller]
    args:
      {{- toYaml .args | nindent 6 }}
    resources:
      requests: {cpu: 50m, memory: 96Mi}
      limits: {memory: 256Mi}
    {{- include "kontroller.field" (list 4 "securityContext" $root.Values.securityContext) }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- with include "kontroller.connectionMount" .connection }}
      {{- . | nindent 6 }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- with .connection }}
  {{- include "kontroller.connectionVolume" (list "connection" .) | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* Annotations of a hook. Takes a list: the hooks, and the weight: rights come before the job that needs them. */ -}}
{{- define "kontroller.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* The service account of a hook, with a role in the given namespaces, or (none given) in all.
Takes a dict: root, name, component, hooks, namespaces, rules (YAML). */ -}}
{{- define "kontroller.hookRights" -}}
{{- $given := . }}
{{- $root := .root }}
{{- $scope := ternary "" "Cluster" (gt (len .namespaces) 0) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace | quote }}
  {{- include "kontroller.metadata" (dict "root" $root "component" .component "annotations" (include "kontroller.hook" (list .hooks 0) | fromYaml)) | nindent 2 }}
automountServiceAccountToken: false
{{- range default (list "") .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}Role
metadata:
  name: {{ $given.name }}
  {{- with . }}
  namespace: {{ . | quote }}
  {{- end }}
  {{- include "kontroller.metadata" (dict "root" $root "component" $given.component "annotations" (include "kontroller.hook" (list $given.hooks 0) | fromYaml)) | nindent 2 }}
rules:
  {{- $given.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}RoleBinding
metadata:
  name: {{ $given.name }}
  {{- with . }}
  namespace: {{ . | quote }}
  {{- end }}
  {{- include "kontroller.metadata" (dict "root" $root "component" $given.component "annotations" (include "kontroller.hook" (list $given.hooks 0) | fromYaml)) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $scope }}Role
  name: {{ $given.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $given.name }}
    namespace: {{ $root.Release.Namespace | quote }}
{{- end }}
{{- end }}

{{- /* The rights of `kontroller check api`, which asks for creations as dry runs. */ -}}
{{- define "kontroller.checkApiRules" -}}
- apiGroups: [kontroller.dev]
  resources: [kafkatopics]
  verbs: [create]
{{- end }}

{{- define "kontroller.checkClusterCheck" -}}
{{- $check := .Values.clusterCheck }}
{{- if and $check.connectionSecrets (not $check.bootstrapServers) }}
{{- fail "clusterCheck.connectionSecrets says how brokers are secured, and clusterCheck.bootstrapServers names none: set it, or leave both out" }}
{{- end }}
{{- if and $check.bootstrapServers (or .Values.kafka.enabled .Values.controller.enabled) }}
{{- fail (printf "clusterCheck.bootstrapServers is for a release without brokers and controllers: leave it empty, because with %s.enabled `helm test` asks the release's own" (ternary "kafka" "controller" .Values.kafka.enabled)) }}
{{- end }}
{{- end }}
