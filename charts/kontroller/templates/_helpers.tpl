{{- define "kontroller.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "kontroller.fullname" -}}
{{- $name := include "kontroller.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
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

{{- define "kontroller.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- /* Takes a list: the root context and the values of the workload. */ -}}
{{- define "kontroller.scheduling" -}}
{{- $root := index . 0 }}
{{- $workload := index . 1 }}
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
{{- with $workload.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $workload.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- /* What the operator may do in a namespace that it watches. It never writes a spec; a patch is for finalizers. */ -}}
{{- define "kontroller.operatorRules" -}}
- apiGroups: [kontroller.dev]
  resources: [kafkaclusters, kafkatopics, partitionreassignments, preferredelections, featuresets]
  verbs: [get, list, watch, patch]
- apiGroups: [kontroller.dev]
  resources:
    - kafkaclusters/status
    - kafkatopics/status
    - partitionreassignments/status
    - preferredelections/status
    - featuresets/status
  verbs: [get, patch]
# A topic owns the reassignments that it makes, and the admission of owner references asks for this.
- apiGroups: [kontroller.dev]
  resources: [kafkatopics/finalizers]
  verbs: [update]
- apiGroups: [kontroller.dev]
  resources: [partitionreassignments]
  verbs: [create, delete]
- apiGroups: [kontroller.dev]
  resources: [preferredelections]
  verbs: [delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
