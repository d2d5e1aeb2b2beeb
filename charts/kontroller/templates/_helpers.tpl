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
{{- fail (printf "names of Services must begin with a letter, but with this release's name they begin with %s: set fullnameOverride, or choose another name" $whole) }}
{{- end }}
{{- if gt (len $whole) 40 }}
{{- $whole = printf "%s-%s" ($whole | trunc 31 | trimSuffix "-") ($whole | sha256sum | trunc 8) }}
{{- end }}
{{- $whole }}
{{- end }}

{{- /* Labels and annotations of an object. Takes a dict: root; and component, labels, annotations, which may be left out. */ -}}
{{- define "kontroller.metadata" -}}
{{- $root := .root }}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/name" (include "kontroller.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/part-of" "kontroller"
  "app.kubernetes.io/managed-by" $root.Release.Service
}}
{{- with .component }}
{{- $_ := set $labels "app.kubernetes.io/component" . }}
{{- end }}
{{- dict "labels" (merge $labels (.labels | default dict) ($root.Values.commonLabels | default dict)) | toYaml }}
{{- $annotations := merge dict (.annotations | default dict) ($root.Values.commonAnnotations | default dict) }}
{{- include "kontroller.field" (list 0 "annotations" $annotations) }}
{{- end }}

{{- /* Labels and annotations of a pod. They have no version of the chart, which would restart it at each upgrade. Takes a dict: root,
component, the values of its workload, and annotations of the chart, which may be left out. */ -}}
{{- define "kontroller.podMetadata" -}}
{{- $labels := include "kontroller.selectorLabels" (list .root .component) | fromYaml }}
{{- dict "labels" (merge $labels (.workload.podLabels | default dict) (.root.Values.commonLabels | default dict)) | toYaml }}
{{- $annotations := merge dict (.annotations | default dict) (.workload.podAnnotations | default dict) }}
{{- include "kontroller.field" (list 0 "annotations" $annotations) }}
{{- end }}

{{- /* Takes a list: the root context and the component. */ -}}
{{- define "kontroller.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kontroller.name" (index . 0) | quote }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
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

{{- define "kontroller.topicRulesName" -}}
{{ include "kontroller.fullname" . }}-topic-rules
{{- end }}

{{- /* The file with the rules for topics; empty without rules. */ -}}
{{- define "kontroller.topicRules" -}}
{{- with .Values.topicRules }}
{{- dict "rules" . | toYaml }}
{{- end }}
{{- end }}

{{- /* An annotation of pods that read the rules, which only read them at their start. */ -}}
{{- define "kontroller.topicRulesChecksum" -}}
{{- with include "kontroller.topicRules" . }}
{{- dict "checksum/topic-rules" (sha256sum .) | toYaml }}
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

{{- /* The reference of an image. Takes a list: the root context, the name of the image's values, and these. The digest wins over
the tag, because not all container runtimes take both. */ -}}
{{- define "kontroller.imageReference" -}}
{{- $root := index . 0 }}
{{- $image := index . 2 }}
{{- if regexMatch "@|:[^/]*$" $image.repository }}
{{- fail (printf "%s.repository is %s, which has a tag or a digest: set %s.tag or %s.digest instead" (index . 1) $image.repository (index . 1) (index . 1)) }}
{{- end }}
{{- with $image.registry | default $root.Values.image.registry }}{{ . }}/{{ end }}
{{- $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- define "kontroller.image" -}}
{{ include "kontroller.imageReference" (list . "image" .Values.image) }}
{{- end }}

{{- define "kontroller.kafkaImage" -}}
{{ include "kontroller.imageReference" (list . "kafka.image" .Values.kafka.image) }}
{{- end }}

{{- /* More items of a list that is there already. Takes a list: the indentation, and the items. */ -}}
{{- define "kontroller.items" -}}
{{- with index . 1 }}
{{- toYaml . | nindent (index $ 0) }}
{{- end }}
{{- end }}

{{- /* Refuses two values with the same port. Takes a dict: the port by the name of its value. */ -}}
{{- define "kontroller.checkPorts" -}}
{{- $names := dict }}
{{- range $name, $port := . }}
{{- $number := toString (int $port) }}
{{- with get $names $number }}
{{- fail (printf "%s and %s are both %s, and one container cannot listen twice on a port: change one of them" . $name $number) }}
{{- end }}
{{- $_ := set $names $number $name }}
{{- end }}
{{- end }}

{{- /* A field of an object, or nothing if its value is empty. Takes a list: the indentation, the field's name, its value. */ -}}
{{- define "kontroller.field" -}}
{{- with index . 2 }}
{{- dict (index $ 1) . | toYaml | nindent (index $ 0) }}
{{- end }}
{{- end }}

{{- /* Settings of a pod from the values of its workload. Takes a list: the root context, these values, and, for a workload of
several pods, its component: its pods prefer nodes and zones without each other. */ -}}
{{- define "kontroller.podSettings" -}}
{{- $root := index . 0 }}
{{- $workload := index . 1 }}
{{- $component := "" }}
{{- if gt (len .) 2 }}
{{- $component = index . 2 }}
{{- end }}
{{- include "kontroller.field" (list 0 "securityContext" $root.Values.podSecurityContext) }}
{{- include "kontroller.field" (list 0 "imagePullSecrets" $root.Values.imagePullSecrets) }}
{{- include "kontroller.field" (list 0 "nodeSelector" $workload.nodeSelector) }}
{{- include "kontroller.field" (list 0 "tolerations" $workload.tolerations) }}
{{- include "kontroller.field" (list 0 "affinity" $workload.affinity) }}
{{- if $workload.affinity }}
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
{{- include "kontroller.field" (list 0 "topologySpreadConstraints" $workload.topologySpreadConstraints) }}
{{- if $workload.topologySpreadConstraints }}
{{- else if $component }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "kontroller.selectorLabels" (list $root $component) | nindent 8 }}
{{- end }}
{{- range list "priorityClassName" "dnsPolicy" "dnsConfig" "terminationGracePeriodSeconds" }}
{{- include "kontroller.field" (list 0 . (get $workload .)) }}
{{- end }}
{{- end }}

{{- /* Settings of a container from the values of its workload. Takes a list: the root context, and the values. */ -}}
{{- define "kontroller.containerSettings" -}}
{{- include "kontroller.field" (list 0 "envFrom" (index . 1).extraEnvFrom) }}
{{- include "kontroller.field" (list 0 "resources" (index . 1).resources) }}
{{- include "kontroller.field" (list 0 "securityContext" (index . 0).Values.securityContext) }}
{{- end }}

{{- /* One pod less at a time. Takes a list: the root context, the component, and the name. */ -}}
{{- define "kontroller.disruptionBudget" -}}
{{- $root := index . 0 -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace | quote }}
  {{- include "kontroller.metadata" (dict "root" $root "component" (index . 1)) | nindent 2 }}
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
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests:
          storage: {{ .size | quote }}
{{- end }}
{{- end }}

{{- /* The domain of the release's services. */ -}}
{{- define "kontroller.serviceDomain" -}}
{{ .Release.Namespace }}.svc{{ with .Values.clusterDomain }}.{{ . }}{{ end }}
{{- end }}

{{- /* Maps as lines of a properties file. Takes a list: the name of their value, and the maps, of which the last one with a setting
decides; `merge` would take 0 and false for nothing. Whole numbers of a values file come as floats: 604800000, not 6.048e+08. From 2^53 on
floats skip whole numbers, so Helm has rounded them: 9223372036854775807 to ...808. */ -}}
{{- define "kontroller.properties" -}}
{{- $settings := dict }}
{{- range rest . }}
{{- range $name, $value := . }}
{{- $_ := set $settings $name $value }}
{{- end }}
{{- end }}
{{- range $name, $value := $settings }}
{{- if kindIs "float64" $value }}
{{- if or (ge $value 9007199254740992.0) (le $value -9007199254740992.0) }}
{{- fail (printf "%s: Helm rounds numbers of 2^53 (9007199254740992) and more, and so that of %s: write it in quotes" (index $ 0) $name) }}
{{- end }}
{{- $value = ternary (printf "%.0f" $value) (toString $value) (eq (floor $value) $value) }}
{{- end }}
{{ $name }}={{ $value }}
{{- end }}
{{- end }}

{{- /* The field namespaceSelector of an admission rule: the given selector; if that is empty, the watched namespaces; nothing if the
operator watches all of them. Takes a list: the root context, and the selector. */ -}}
{{- define "kontroller.namespaceSelector" -}}
{{- $watched := dict }}
{{- with (index . 0).Values.watchNamespaces }}
{{- $watched = dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" .)) }}
{{- end }}
{{- include "kontroller.field" (list 0 "namespaceSelector" (index . 1 | default $watched)) | trim }}
{{- end }}

{{- /* The binding of an admission policy, in the namespaces of kontroller.namespaceSelector. Takes a list: the root context, the name of
the policy, and the selector. */ -}}
{{- define "kontroller.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  {{- include "kontroller.metadata" (dict "root" (index . 0)) | nindent 2 }}
spec:
  policyName: {{ index . 1 }}
  validationActions: [Deny]
  {{- with include "kontroller.namespaceSelector" (list (index . 0) (index . 2)) }}
  matchResources:
    {{- . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* The operator's rights in a namespace that it watches. It writes the specs of the objects that it creates; a patch is for finalizers. */ -}}
{{- define "kontroller.operatorRules" -}}
{{ .Files.Get "operator-rules.yaml" | trim }}
{{- end }}

{{- /* Annotations of an alert with what to do about it. Takes a list: the root context, the runbook by alert, and the alert. */ -}}
{{- define "kontroller.runbook" -}}
{{- $alert := index . 2 -}}
runbook: {{ get (index . 1) $alert | required (printf "runbook.yaml has no %s" $alert) | toJson }}
{{- with (index . 0).Values.monitoring.prometheusRule.runbookUrl }}
runbook_url: {{ printf "%s#%s" . (lower $alert) | quote }}
{{- end }}
{{- end }}

{{- /* How the HTTP ports of operator, controller and alarms are secured: options, mounts and volumes of a pod. */ -}}
{{- define "kontroller.httpOptions" -}}
{{- with .Values.monitoring.http }}
{{- if and .clientCaSecret (not .certificateSecret) }}
{{- fail "monitoring.http.clientCaSecret needs monitoring.http.certificateSecret: HTTP has no certificates" }}
{{- end }}
{{- if .certificateSecret }}
- --metrics-certificate=/etc/kontroller/metrics-certificate/tls.crt
- --metrics-key=/etc/kontroller/metrics-certificate/tls.key
{{- end }}
{{- if .clientCaSecret }}
- --metrics-client-ca=/etc/kontroller/metrics-client-ca/ca.crt
{{- end }}
{{- if .tokenSecret }}
- --metrics-token-file=/etc/kontroller/metrics-token/token
{{- end }}
{{- end }}
{{- end }}

{{- define "kontroller.httpSecrets" -}}
{{- with .Values.monitoring.http }}
{{- list (dict "name" "metrics-certificate" "secret" .certificateSecret) (dict "name" "metrics-client-ca" "secret" .clientCaSecret) (dict "name" "metrics-token" "secret" .tokenSecret) | toYaml }}
{{- end }}
{{- end }}

{{- define "kontroller.httpMounts" -}}
{{- range include "kontroller.httpSecrets" . | fromYamlArray }}
{{- if .secret }}
- {name: {{ .name }}, mountPath: /etc/kontroller/{{ .name }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "kontroller.httpVolumes" -}}
{{- range include "kontroller.httpSecrets" . | fromYamlArray }}
{{- if .secret }}
- name: {{ .name }}
  secret: {secretName: {{ .secret | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end }}

{{- /* The scheme of probes at the port of metrics. */ -}}
{{- define "kontroller.probeScheme" -}}
{{- if .Values.monitoring.http.certificateSecret }}, scheme: HTTPS{{ end }}
{{- end }}
