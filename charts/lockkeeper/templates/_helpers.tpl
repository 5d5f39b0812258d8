{{- /* Names are fixed and do not depend on the release: CRDs and webhook configurations are cluster-scoped, so a cluster
       has one release, and its account has rights on objects by name. */}}

{{- define "lockkeeper.labels" -}}
{{- /* The selector's labels are set where the object has its own name. */ -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: lockkeeper
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "lockkeeper.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The projects whose kinds are guarded, as JSON: those of the values and of the configuration. */}}
{{- define "lockkeeper.foreignKinds" -}}
{{- concat .Values.foreignKinds (dig "webhook" "foreignKinds" list .Values.config) | uniq | sortAlpha | toJson -}}
{{- end }}

{{- /* The configuration file. */}}
{{- define "lockkeeper.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- with include "lockkeeper.foreignKinds" . | fromJsonArray -}}
{{- $webhook := set (dig "webhook" dict $config) "foreignKinds" . -}}
{{- $_ := set $config "webhook" $webhook -}}
{{- end -}}
{{- if .Values.controller.enabled -}}
{{- /* The one that the role is about. */ -}}
{{- $lease := printf "%s/lockkeeper-controller" .Release.Namespace -}}
{{- $controller := dig "controller" dict $config -}}
{{- $election := dig "leaderElection" dict $controller -}}
{{- if ne (dig "lease" $lease $election) $lease -}}
{{- fail (printf "config.controller.leaderElection.lease: the chart's role is for %s; leave it out" $lease) -}}
{{- end -}}
{{- $_ := set $config "controller" (set $controller "leaderElection" (set $election "lease" $lease)) -}}
{{- else -}}
{{- /* Only the controller removes finalizers. */ -}}
{{- $webhook := dig "webhook" dict $config -}}
{{- $_ := set $config "webhook" (set $webhook "finalizers" false) -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- /* The operations on a kind of another project that some rule is on for, as JSON; nothing where there are none,
       or the project's kinds are not enabled. `rules` are the entries that crdgen generates. */}}
{{- define "lockkeeper.operations" -}}
{{- $given := dig "rules" dict .root.Values.config -}}
{{- $operations := list -}}
{{- if has .project (include "lockkeeper.foreignKinds" .root | fromJsonArray) -}}
{{- range .rules | fromJsonArray -}}
{{- $rule := . -}}
{{- $actions := list (dig "actions" .id (ternary "on" "off" .on) $given) -}}
{{- range dig "namespaces" dict $given -}}
{{- $actions = append $actions (dig "actions" $rule.id "off" .) -}}
{{- end -}}
{{- if without $actions "off" -}}
{{- $operations = concat $operations .operations -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $operations -}}
{{- $sent := list -}}
{{- range list "CREATE" "UPDATE" "DELETE" -}}
{{- if has . $operations -}}{{- $sent = append $sent . -}}{{- end -}}
{{- end -}}
{{ toJson $sent }}
{{- end -}}
{{- end }}

{{- /* Whether the configuration leaves a rule as it is declared, everywhere: then what cannot be softened may hold it. */}}
{{- define "lockkeeper.isDeclared" -}}
{{- $given := dig "rules" dict .root.Values.config -}}
{{- $actions := list (dig "actions" .rule .action $given) -}}
{{- range dig "namespaces" dict $given -}}
{{- $actions = append $actions (dig "actions" $.rule $.action .) -}}
{{- end -}}
{{- range dig "exceptions" list $given -}}
{{- if has $.rule (.rules | default list) -}}{{- $actions = append $actions "excepted" -}}{{- end -}}
{{- end -}}
{{- if not (without $actions .action) -}}true{{- end -}}
{{- end }}

{{- /* The CA bundle if it is given. Otherwise the webhook or cert-manager injects it: the field is left out,
       so an upgrade keeps the injected bundle. */}}
{{- define "lockkeeper.caBundle" -}}
{{- if eq .Values.certificates.mode "given" -}}
{{- $bundle := .Values.certificates.caBundle -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" $bundle) -}}
{{- fail "certificates.caBundle: give the CA of the certificate, as PEM" -}}
{{- end -}}
{{- /* Everybody may read a registration. */ -}}
{{- if contains "PRIVATE KEY-----" $bundle -}}
{{- fail "certificates.caBundle: it holds a private key; give certificates alone" -}}
{{- end -}}
{{- b64enc $bundle -}}
{{- end -}}
{{- end }}

{{- /* The Secret that is mounted, unless the webhook keeps its own. The names differ, so that a change of the mode
       never deletes the Secret that is used next. */}}
{{- define "lockkeeper.mountedSecret" -}}
{{- if eq .Values.certificates.mode "cert-manager" -}}
lockkeeper-cert-manager-tls
{{- else if eq .Values.certificates.mode "given" -}}
{{- $name := required "certificates.secretName: name the Secret with the certificate" .Values.certificates.secretName -}}
{{- if has $name (list "lockkeeper-tls" "lockkeeper-cert-manager-tls") -}}
{{- fail (printf "certificates.secretName: %s is a name of the chart's own; take another" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{- /* The metadata of the pods of both Deployments; `name` is the Deployment, `values` its section. */}}
{{- define "lockkeeper.podMetadata" -}}
labels:
  app.kubernetes.io/name: {{ .name }}
  {{- include "lockkeeper.labels" .root | nindent 2 }}
annotations:
  checksum/config: {{ include "lockkeeper.config" .root | sha256sum }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "lockkeeper.podSpec" -}}
serviceAccountName: {{ .name }}
# Its process calls the API server.
automountServiceAccountToken: true
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: {{ $.name }}
{{- end }}
{{- end }}

{{- define "lockkeeper.container" -}}
name: lockkeeper
image: {{ include "lockkeeper.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
# Freed memory is returned at once: a third less memory after a list of many objects.
- name: MIMALLOC_PURGE_DELAY
  value: "0"
{{- with .root.Values.logFilter }}
- name: LOCKKEEPER_LOG
  value: {{ . | quote }}
{{- end }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
    - ALL
{{- end }}

{{- /* The conditions of admission policies about the sender of a request. */}}
{{- define "lockkeeper.notByController" -}}
{{- printf "request.userInfo.username != 'system:serviceaccount:%s:lockkeeper-controller'" .Release.Namespace -}}
{{- end }}

{{- /* The CEL string of the default queue. */}}
{{- define "lockkeeper.defaultQueue" -}}
{{- if not (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version) -}}
{{- fail "policies.defaultQueue: needs Kubernetes 1.36; use policies.queueRequired, which rejects jobs without a queue" -}}
{{- end -}}
{{- printf "'%s'" (required "policies.defaultQueue.name: name the LocalQueue" .Values.policies.defaultQueue.name) -}}
{{- end }}

{{- define "lockkeeper.notByExemptUser" -}}
{{- $users := list -}}
{{- range .Values.policies.queueRequired.exemptUsers -}}{{- $users = append $users (printf "'%s'" .) -}}{{- end -}}
{{- printf "!(request.userInfo.username in [%s])" (join ", " $users) -}}
{{- end }}
