{{- define "kontroller.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* A StatefulSet's pods are labelled with its name and 11 characters more, and no label is longer than 63. What is longer ends
with a hash of all of it, so that releases whose names begin alike are not taken for one. Names of releases may have dots and
begin with a digit, those of Services not. */ -}}
{{- define "kontroller.fullname" -}}
{{- $name := include "kontroller.name" . }}
{{- $whole := printf "%s-%s" .Release.Name $name }}
{{- if .Values.fullnameOverride }}
{{- $whole = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- $whole = .Release.Name }}
{{- end }}
{{- $whole = replace "." "-" $whole }}
{{- if not (regexMatch "^[a-z]" $whole) }}
{{- fail (printf "names of Services begin with a letter, and that of the release makes them begin with %s: set fullnameOverride, or choose another name" $whole) }}
{{- end }}
{{- if gt (len $whole) 40 }}
{{- $whole = printf "%s-%s" ($whole | trunc 31 | trimSuffix "-") ($whole | sha256sum | trunc 8) }}
{{- end }}
{{- $whole }}
{{- end }}

{{- define "kontroller.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "kontroller.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kontroller
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Takes a list: the root context and the component. */ -}}
{{- define "kontroller.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kontroller.name" (index . 0) }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "kontroller.operatorName" -}}
{{ include "kontroller.fullname" . }}-operator
{{- end }}

{{- define "kontroller.controllerName" -}}
{{ include "kontroller.fullname" . }}-controller
{{- end }}

{{- define "kontroller.operatorServiceAccount" -}}
{{- if .Values.operator.serviceAccount.create }}
{{- default (include "kontroller.operatorName" .) .Values.operator.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The Service by which the API server asks the operator. */}}
{{- define "kontroller.webhookName" -}}
{{- printf "%s-webhook" (include "kontroller.operatorName" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{/* The Secret with the webhook's certificate. */}}
{{- define "kontroller.webhookSecret" -}}
{{- $certificate := .Values.webhook.certificate }}
{{- if not (or $certificate.secretName $certificate.certManager.enabled) }}
{{- fail "webhook.enabled needs a certificate: set webhook.certificate.secretName and caBundle, or certManager.enabled" }}
{{- end }}
{{- default (printf "%s-tls" (include "kontroller.webhookName" .)) $certificate.secretName }}
{{- end }}

{{- define "kontroller.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "kontroller.kafkaImage" -}}
{{ .Values.kafka.image.repository }}:{{ default .Chart.AppVersion .Values.kafka.image.tag }}
{{- end }}

{{- /* Where a pod runs. Takes a list: the root context, the values of the workload, and its component where it has several
pods: those are rather not on one node, and rather spread over zones. */ -}}
{{- define "kontroller.scheduling" -}}
{{- $root := index . 0 }}
{{- $workload := index . 1 }}
{{- $component := "" }}
{{- if gt (len .) 2 }}
{{- $component = index . 2 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $workload.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $workload.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $workload.affinity }}
affinity:
  {{- toYaml $workload.affinity | nindent 2 }}
{{- else if $component }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "kontroller.selectorLabels" (list $root $component) | nindent 14 }}
{{- end }}
{{- if $workload.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $workload.topologySpreadConstraints | nindent 2 }}
{{- else if $component }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kontroller.selectorLabels" (list $root $component) | nindent 8 }}
{{- end }}
{{- with $workload.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- /* Labels of an object. Takes a list: the root context and the component. */ -}}
{{- define "kontroller.componentLabels" -}}
{{ include "kontroller.labels" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* One pod less at a time. Takes a list: the root context, the component, and the name. */ -}}
{{- define "kontroller.disruptionBudget" -}}
{{- $root := index . 0 -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "kontroller.componentLabels" (list $root (index . 1)) | nindent 4 }}
spec:
  maxUnavailable: 1
  {{- if has (index . 1) (list "controller" "operator") }}
  # One that hangs keeps nothing that its eviction would cost.
  unhealthyPodEvictionPolicy: AlwaysAllow
  {{- end }}
  selector:
    matchLabels:
      {{- include "kontroller.selectorLabels" (list $root (index . 1)) | nindent 6 }}
{{- end }}

{{- /* The claim, or the lack of one, that a StatefulSet keeps its data in; a part of its spec. */ -}}
{{- define "kontroller.claims" -}}
{{- if .enabled -}}
volumeClaimTemplates:
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ .size }}
{{- end }}
{{- end }}

{{- /* The domain of the release's services. */ -}}
{{- define "kontroller.serviceDomain" -}}
{{ .Release.Namespace }}.svc{{ with .Values.clusterDomain }}.{{ . }}{{ end }}
{{- end }}

{{- /* A map as lines of a properties file. Whole numbers of a values file come as floats: 604800000, not 6.048e+08. */ -}}
{{- define "kontroller.properties" -}}
{{- range $name, $value := . }}
{{- if kindIs "float64" $value }}
{{- $value = ternary (printf "%.0f" $value) (toString $value) (eq (floor $value) $value) }}
{{- end }}
{{ $name }}={{ $value }}
{{- end }}
{{- end }}

{{- /* What the operator may do in a namespace that it watches. It never writes a spec; a patch is for finalizers. */ -}}
{{- define "kontroller.operatorRules" -}}
{{ .Files.Get "operator-rules.yaml" | trim }}
{{- end }}
