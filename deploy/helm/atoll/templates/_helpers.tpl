{{- /* At most 40 characters: JobSet adds 22 more to the names of pods, which have 63. */ -}}
{{- define "atoll.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (default "atoll" .Values.nameOverride) | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "atoll.labels" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "atoll.selector" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "atoll.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "atoll.scheme" -}}
{{ if .Values.tls.enabled }}https{{ else }}http{{ end }}
{{- end }}

{{- /* The address to listen on, as it stands before a port. */ -}}
{{- define "atoll.listen" -}}
{{ if contains ":" .Values.listenAddress }}[{{ .Values.listenAddress }}]{{ else }}{{ .Values.listenAddress }}{{ end }}
{{- end }}

{{- define "atoll.onVolume" -}}
{{ if not (hasPrefix "s3://" .Values.store.location) }}yes{{ end }}
{{- end }}

{{- define "atoll.hasTokens" -}}
{{ if or .Values.tls.enabled .Values.tokens.enabled }}yes{{ end }}
{{- end }}

{{- define "atoll.tokensSecret" -}}
{{ .Values.tokens.existingSecret | default (printf "%s-tokens" (include "atoll.name" .)) }}
{{- end }}

{{- define "atoll.tlsSecret" -}}
{{ .Values.tls.existingSecret | default (printf "%s-tls" (include "atoll.name" .)) }}
{{- end }}

{{- define "atoll.clientSecret" -}}
{{ .Values.tls.existingClientSecret | default (printf "%s-client-tls" (include "atoll.name" .)) }}
{{- end }}

{{- define "atoll.exports" -}}
{{ if and (eq .Values.mode "batch") .Values.batch.export.enabled (not (include "atoll.isOneJob" .)) }}yes{{ end }}
{{- end }}

{{- define "atoll.standby" -}}
{{ if and (eq .Values.mode "service") (gt (int .Values.coordinator.replicas) 1) }}yes{{ end }}
{{- end }}

{{- /* One JobSet where its controller is installed, unless the batch exists as two Jobs. */ -}}
{{- define "atoll.batchKind" -}}
{{- if ne .Values.batch.kind "Auto" -}}
{{ .Values.batch.kind }}
{{- else if and (.Capabilities.APIVersions.Has "jobset.x-k8s.io/v1alpha2") (not (lookup "batch/v1" "Job" .Release.Namespace (printf "%s-coordinator" (include "atoll.name" .)))) -}}
JobSet
{{- else -}}
Jobs
{{- end -}}
{{- end }}

{{- /* Whether the batch is one Job, whose pod with index 0 is the coordinator. */ -}}
{{- define "atoll.isOneJob" -}}
{{ if and (eq .Values.mode "batch") (eq .Values.batch.kind "Job") }}yes{{ end }}
{{- end }}

{{- /* The labels of the coordinator's pod, and of workers' pods. */ -}}
{{- define "atoll.coordinatorSelector" -}}
{{ include "atoll.selector" . }}
{{- if include "atoll.isOneJob" . }}
batch.kubernetes.io/job-completion-index: "0"
{{- else }}
app.kubernetes.io/component: coordinator
{{- end }}
{{- end }}

{{- define "atoll.workerSelector" -}}
{{ include "atoll.selector" . }}
app.kubernetes.io/component: {{ if include "atoll.isOneJob" . }}batch{{ else }}worker{{ end }}
{{- end }}

{{- /* A batch in a queue is created suspended. Kueue starts and stops it from then on, so an upgrade keeps what it decided. */ -}}
{{- define "atoll.suspend" -}}
{{- $live := dict -}}
{{- if .Values.batch.queueName -}}
{{- $type := ternary "jobset.x-k8s.io/v1alpha2 JobSet" "batch/v1 Job" (eq (include "atoll.batchKind" .) "JobSet") | splitList " " -}}
{{- $live = lookup (first $type) (last $type) .Release.Namespace (include "atoll.name" .) | default dict -}}
{{- end -}}
{{ or .Values.batch.suspend (dig "spec" "suspend" (ne .Values.batch.queueName "") $live) }}
{{- end }}

{{- define "atoll.queueLabel" -}}
{{- with .Values.batch.queueName }}
kueue.x-k8s.io/queue-name: {{ . }}
{{- end }}
{{- end }}

{{- define "atoll.podSecurity" -}}
runAsNonRoot: true
{{- range $key := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- with get $.Values.podSecurityContext $key }}
{{ $key }}: {{ int64 . }}
{{- end }}
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "atoll.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* How an operator reaches the coordinator from another machine. */ -}}
{{- define "atoll.operatorNotes" -}}
{{- $kubectl := printf "kubectl -n %s" .Release.Namespace }}
Reach the coordinator from this machine, through forwarded ports (or from a pod with the label atoll/operator: "true"):
  {{ $kubectl }} port-forward svc/{{ include "atoll.name" . }}-coordinator 7440 7441 &
{{- if include "atoll.hasTokens" . }}
  export ATOLL_TOKEN=$({{ $kubectl }} get secret {{ include "atoll.tokensSecret" . }} -o jsonpath='{.data.operator}' | base64 -d)
{{- end }}
{{- if .Values.tls.enabled }}
  {{ $kubectl }} get secret {{ include "atoll.tlsSecret" . }} -o jsonpath='{.data.ca\.crt}' | base64 -d > ca.crt
  export ATOLL_TLS_CA=ca.crt
{{- if .Values.tls.clientAuth }}
  {{ $kubectl }} get secret {{ include "atoll.clientSecret" . }} -o jsonpath='{.data.tls\.crt}' | base64 -d > client.crt
  {{ $kubectl }} get secret {{ include "atoll.clientSecret" . }} -o jsonpath='{.data.tls\.key}' | base64 -d > client.key
  export ATOLL_TLS_CERT=client.crt ATOLL_TLS_KEY=client.key
{{- end }}
{{- end }}
  export ATOLL_COORDINATOR={{ include "atoll.scheme" . }}://localhost:7440
The dashboard is {{ include "atoll.scheme" . }}://localhost:7441{{ if include "atoll.hasTokens" . }}; sign in with the token{{ end }}. Commands:
{{- end }}

{{- define "atoll.isAddress" -}}
{{ if regexMatch "^([0-9]+(\\.[0-9]+){3}|[0-9a-f:]*:[0-9a-f:]*)$" . }}yes{{ end }}
{{- end }}

{{- /* The names of the coordinator's Service, from the same namespace and from others. */ -}}
{{- define "atoll.serviceHosts" -}}
{{- $space := printf "%s-coordinator.%s" (include "atoll.name" .) .Release.Namespace -}}
{{ printf "%s-coordinator" (include "atoll.name" .) }},{{ $space }},{{ $space }}.svc,{{ $space }}.svc.cluster.local
{{- end }}

{{- /* The names by which browsers reach the dashboard: those of the certificate, and those of proxies. Addresses need none. */ -}}
{{- define "atoll.httpHosts" -}}
{{- $hosts := include "atoll.serviceHosts" . | splitList "," -}}
{{- range .Values.tls.hosts -}}
{{- if not (or (include "atoll.isAddress" .) (contains "*" .)) -}}
{{- $hosts = append $hosts . -}}
{{- end -}}
{{- end -}}
{{ concat $hosts .Values.service.hosts | uniq | join "," }}
{{- end }}

{{- /* The name service. That of OpenShift listens on another port, and policies see the port behind a Service. */ -}}
{{- define "atoll.nameService" -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
    - { protocol: UDP, port: 5353 }
    - { protocol: TCP, port: 5353 }
{{- end }}

{{- /* Settings of a TOML file: a map of keys to texts, numbers and flags. */ -}}
{{- define "atoll.settings" -}}
{{- range $key, $value := . }}
{{ $key }} = {{ if kindIs "string" $value }}{{ $value | quote }}{{ else if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ printf "%.0f" $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end }}

{{- /* What an operator decides about where a pod runs and as whom. */ -}}
{{- define "atoll.placement" -}}
{{- $pod := index . 1 -}}
{{- with index . 0 -}}
automountServiceAccountToken: false
{{- if or $pod.serviceAccount.name $pod.serviceAccount.create }}
serviceAccountName: {{ $pod.serviceAccount.name | default (printf "%s-%s" (include "atoll.name" .) $pod.component) }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $pod.affinity }}
affinity:
  {{- toYaml $pod.affinity | nindent 2 }}
{{- else if and (eq $pod.component "coordinator") (include "atoll.standby" .) }}
# A standby on the same node would be lost with it.
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "atoll.coordinatorSelector" . | nindent 14 }}
{{- end }}
{{- with $pod.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ $pod.terminationGracePeriodSeconds }}
securityContext:
  {{- include "atoll.podSecurity" . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "atoll.coordinatorMeta" -}}
labels:
  {{- include "atoll.selector" . | nindent 2 }}
  app.kubernetes.io/component: coordinator
  {{- with .Values.coordinator.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/config: {{ include "atoll.coordinatorChecksum" . }}
  {{- with .Values.coordinator.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "atoll.workerMeta" -}}
labels:
  {{- include "atoll.selector" . | nindent 2 }}
  app.kubernetes.io/component: worker
  {{- with .Values.workers.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/config: {{ include "atoll.workerConfig" . | sha256sum }}
  {{- with .Values.workers.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* What a coordinator needs to reach its store. */ -}}
{{- define "atoll.storeEnv" -}}
{{- if not (include "atoll.onVolume" .) }}
{{- with .Values.store.s3.region }}
- { name: AWS_REGION, value: {{ . | quote }} }
{{- end }}
{{- with .Values.store.s3.endpoint }}
- { name: AWS_ENDPOINT_URL, value: {{ . | quote }} }
{{- end }}
- { name: AWS_ALLOW_HTTP, value: {{ .Values.store.s3.allowHttp | quote }} }
{{- end }}
{{- end }}

{{- /* A pod that replaces another one knows by the uid of its Job what was done before. */ -}}
{{- define "atoll.batchEnv" -}}
{{- if eq .Values.mode "batch" }}
- name: ATOLL_BATCH_ID
  valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']" } }
{{- end }}
{{- end }}

{{- define "atoll.coordinatorPod" -}}
{{ include "atoll.placement" (list . (merge (dict "component" "coordinator") .Values.coordinator)) }}
containers:
  - name: atoll
    image: {{ include "atoll.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [coordinator, --config, /etc/atoll/coordinator.toml, --termination-log, /dev/termination-log]
    terminationMessagePolicy: FallbackToLogsOnError
    {{- if or (eq .Values.mode "batch") (not (include "atoll.onVolume" .)) .Values.coordinator.extraEnv }}
    env:
      {{- include "atoll.batchEnv" . | nindent 6 }}
      {{- if and (eq .Values.mode "service") (not (include "atoll.onVolume" .)) }}
      # Also without a standby: one that is added later asks the active coordinator at the address in its claim.
      - name: POD_IP
        valueFrom: { fieldRef: { fieldPath: status.podIP } }
      - { name: ATOLL_ADVERTISE, value: "{{ if contains ":" .Values.listenAddress }}[$(POD_IP)]{{ else }}$(POD_IP){{ end }}:7440" }
      {{- end }}
      {{- include "atoll.storeEnv" . | nindent 6 }}
      {{- with .Values.coordinator.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- end }}
    {{- if and (not (include "atoll.onVolume" .)) .Values.store.s3.secretName }}
    envFrom:
      - secretRef: { name: {{ .Values.store.s3.secretName }} }
    {{- end }}
    ports:
      - { name: grpc, containerPort: 7440 }
      - { name: http, containerPort: 7441 }
    startupProbe:
      httpGet: { path: /healthz, port: http, scheme: {{ include "atoll.scheme" . | upper }} }
      periodSeconds: 2
      failureThreshold: 300
    readinessProbe:
      httpGet: { path: /readyz, port: http, scheme: {{ include "atoll.scheme" . | upper }} }
      periodSeconds: 2
    livenessProbe:
      httpGet: { path: /healthz, port: http, scheme: {{ include "atoll.scheme" . | upper }} }
      periodSeconds: 10
      failureThreshold: 6
    resources:
      {{- toYaml .Values.coordinator.resources | nindent 6 }}
    securityContext:
      {{- include "atoll.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - { name: config, mountPath: /etc/atoll, readOnly: true }
      - { name: state, mountPath: /var/lib/atoll }
      {{- if include "atoll.hasTokens" . }}
      - { name: tokens, mountPath: /run/atoll/tokens, readOnly: true }
      {{- end }}
      {{- if .Values.tls.enabled }}
      - { name: tls, mountPath: /run/atoll/tls, readOnly: true }
      {{- end }}
      {{- with .Values.coordinator.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap: { name: {{ include "atoll.coordinatorConfigMap" . }} }
  {{- if include "atoll.hasTokens" . }}
  - name: tokens
    secret: { secretName: {{ include "atoll.tokensSecret" . }}, defaultMode: 288 }
  {{- end }}
  {{- if .Values.tls.enabled }}
  - name: tls
    secret: { secretName: {{ include "atoll.tlsSecret" . }}, defaultMode: 288 }
  {{- end }}
  {{- with .Values.coordinator.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "atoll.workerPod" -}}
{{ include "atoll.placement" (list . (merge (dict "component" "worker") .Values.workers)) }}
containers:
  - name: atoll
    image: {{ include "atoll.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [worker, --config, /etc/atoll/worker.toml, --termination-log, /dev/termination-log]
    terminationMessagePolicy: FallbackToLogsOnError
    env:
      - name: ATOLL_NAME
        valueFrom: { fieldRef: { fieldPath: metadata.name } }
      {{- with .Values.workers.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if .Values.monitoring.podMonitor }}
    ports:
      - { name: http, containerPort: 7441 }
    {{- end }}
    resources:
      {{- toYaml .Values.workers.resources | nindent 6 }}
    securityContext:
      {{- include "atoll.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - { name: config, mountPath: /etc/atoll, readOnly: true }
      {{- if include "atoll.hasTokens" . }}
      - { name: tokens, mountPath: /run/atoll/tokens, readOnly: true }
      {{- end }}
      {{- if .Values.tls.enabled }}
      - { name: authority, mountPath: /run/atoll/authority, readOnly: true }
      {{- if .Values.tls.clientAuth }}
      - { name: client, mountPath: /run/atoll/client, readOnly: true }
      {{- end }}
      {{- end }}
      {{- with .Values.workers.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: config
    configMap: { name: {{ include "atoll.name" . }}-worker }
  {{- if include "atoll.hasTokens" . }}
  - name: tokens
    secret: { secretName: {{ include "atoll.tokensSecret" . }}, defaultMode: 288, items: [{ key: worker, path: worker }] }
  {{- end }}
  {{- if .Values.tls.enabled }}
  - name: authority
    secret: { secretName: {{ include "atoll.tlsSecret" . }}, defaultMode: 288, items: [{ key: ca.crt, path: ca.crt }] }
  {{- if .Values.tls.clientAuth }}
  - name: client
    secret: { secretName: {{ include "atoll.clientSecret" . }}, defaultMode: 288 }
  {{- end }}
  {{- end }}
  {{- with .Values.workers.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* A pod of one Job: the coordinator at index 0, otherwise a worker. Placed and sized as workers are. */ -}}
{{- define "atoll.onePod" -}}
{{ include "atoll.placement" (list . (merge (dict "component" "worker") .Values.workers)) }}
containers:
  - name: atoll
    image: {{ include "atoll.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [batch, --coordinator-config, /etc/atoll/coordinator/coordinator.toml, --worker-config, /etc/atoll/worker/worker.toml, --termination-log, /dev/termination-log]
    terminationMessagePolicy: FallbackToLogsOnError
    env:
      - name: ATOLL_NAME
        valueFrom: { fieldRef: { fieldPath: metadata.name } }
      {{- include "atoll.batchEnv" . | nindent 6 }}
      {{- include "atoll.storeEnv" . | nindent 6 }}
      {{- with concat .Values.coordinator.extraEnv .Values.workers.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .Values.store.s3.secretName }}
    envFrom:
      - secretRef: { name: {{ . }} }
    {{- end }}
    ports:
      - { name: grpc, containerPort: 7440 }
      - { name: http, containerPort: 7441 }
    resources:
      {{- toYaml .Values.workers.resources | nindent 6 }}
    securityContext:
      {{- include "atoll.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - { name: coordinator, mountPath: /etc/atoll/coordinator, readOnly: true }
      - { name: worker, mountPath: /etc/atoll/worker, readOnly: true }
      - { name: state, mountPath: /var/lib/atoll }
      {{- if include "atoll.hasTokens" . }}
      - { name: tokens, mountPath: /run/atoll/tokens, readOnly: true }
      {{- end }}
      {{- if .Values.tls.enabled }}
      - { name: tls, mountPath: /run/atoll/tls, readOnly: true }
      - { name: authority, mountPath: /run/atoll/authority, readOnly: true }
      {{- if .Values.tls.clientAuth }}
      - { name: client, mountPath: /run/atoll/client, readOnly: true }
      {{- end }}
      {{- end }}
      {{- with concat .Values.coordinator.extraVolumeMounts .Values.workers.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: coordinator
    configMap: { name: {{ include "atoll.coordinatorConfigMap" . }} }
  - name: worker
    configMap: { name: {{ include "atoll.name" . }}-worker }
  - name: state
    emptyDir: { sizeLimit: 1Gi }
  {{- if include "atoll.hasTokens" . }}
  - name: tokens
    secret: { secretName: {{ include "atoll.tokensSecret" . }}, defaultMode: 288 }
  {{- end }}
  {{- if .Values.tls.enabled }}
  - name: tls
    secret: { secretName: {{ include "atoll.tlsSecret" . }}, defaultMode: 288 }
  - name: authority
    secret: { secretName: {{ include "atoll.tlsSecret" . }}, defaultMode: 288, items: [{ key: ca.crt, path: ca.crt }] }
  {{- if .Values.tls.clientAuth }}
  - name: client
    secret: { secretName: {{ include "atoll.clientSecret" . }}, defaultMode: 288 }
  {{- end }}
  {{- end }}
  {{- with concat .Values.coordinator.extraVolumes .Values.workers.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "atoll.coordinatorConfig" -}}
listen = "{{ include "atoll.listen" . }}:7440"
http = "{{ include "atoll.listen" . }}:7441"
http_hosts = {{ include "atoll.httpHosts" . | quote }}
store = {{ .Values.store.location | quote }}
lease = {{ .Values.coordinator.lease | quote }}
log_format = {{ .Values.coordinator.logFormat | quote }}
{{- if .Values.tls.enabled }}
tls_cert = "/run/atoll/tls/tls.crt"
tls_key = "/run/atoll/tls/tls.key"
{{- if .Values.tls.clientAuth }}
tls_client_ca = "/run/atoll/tls/ca.crt"
{{- end }}
{{- else }}
insecure = true
{{- end }}
{{- if include "atoll.hasTokens" . }}
worker_token_file = "/run/atoll/tokens/worker"
operator_token_file = "/run/atoll/tokens/operator"
metrics_token_file = "/run/atoll/tokens/metrics"
{{- end }}
{{- if include "atoll.standby" . }}
standby = true
takeover_after = {{ .Values.coordinator.takeoverAfter | quote }}
{{- end }}
{{- if eq .Values.mode "batch" }}
run = "/etc/atoll/{{ if include "atoll.isOneJob" . }}coordinator/{{ end }}experiment.toml"
exit_when_done = true
revive = {{ .Values.batch.revive }}
linger = {{ .Values.coordinator.linger | quote }}
{{- if eq (include "atoll.batchKind" .) "Jobs" }}
await_worker = {{ .Values.coordinator.awaitWorker | quote }}
{{- end }}
give_up_after = {{ .Values.coordinator.giveUpAfter | quote }}
{{- if include "atoll.exports" . }}
export = "/var/lib/atoll/export"
{{- end }}
{{- end }}
{{- include "atoll.settings" .Values.coordinator.settings }}
{{- end }}

{{- /* The experiment of a batch is one of its files. */ -}}
{{- define "atoll.coordinatorChecksum" -}}
{{ printf "%s\n%s" (include "atoll.coordinatorConfig" .) (ternary .Values.experiment "" (eq .Values.mode "batch")) | sha256sum }}
{{- end }}

{{- /* Of a batch, its name follows from what is in it: tools that render without a cluster then add another one beside it, and a pod that is started again finds the experiment that its batch was created with. */ -}}
{{- define "atoll.coordinatorConfigMap" -}}
{{ include "atoll.name" . }}-coordinator
{{- if eq .Values.mode "batch" }}-{{ include "atoll.coordinatorChecksum" . | trunc 10 }}{{ end }}
{{- end }}

{{- define "atoll.workerConfig" -}}
coordinator = "{{ include "atoll.scheme" . }}://{{ include "atoll.name" . }}-coordinator:7440"
log_format = {{ .Values.coordinator.logFormat | quote }}
{{- if and .Values.monitoring.podMonitor (not (include "atoll.isOneJob" .)) }}
http = "{{ include "atoll.listen" . }}:7441"
{{- end }}
{{- if .Values.tls.enabled }}
tls_ca = "/run/atoll/authority/ca.crt"
{{- if .Values.tls.clientAuth }}
tls_cert = "/run/atoll/client/tls.crt"
tls_key = "/run/atoll/client/tls.key"
{{- end }}
{{- end }}
{{- if include "atoll.hasTokens" . }}
token_file = "/run/atoll/tokens/worker"
{{- if not .Values.tls.enabled }}
insecure = true
{{- end }}
{{- end }}
{{- if eq .Values.mode "batch" }}
give_up_after = {{ .Values.workers.giveUpAfter | quote }}
{{- end }}
{{- include "atoll.settings" .Values.workers.settings }}
{{- end }}

{{- /* What cannot be changed in a batch that exists: of Jobs, all but their scale and limits; of a JobSet, everything. */ -}}
{{- define "atoll.batchChecksum" -}}
{{- $jobs := ternary (include "atoll.oneJob" .) (printf "%s\n%s" (include "atoll.coordinatorJob" .) (include "atoll.workerJob" .)) (ne (include "atoll.isOneJob" .) "") -}}
{{- if ne (include "atoll.batchKind" .) "JobSet" -}}
{{- $jobs = regexReplaceAll "(?m)^(completions|parallelism|backoffLimit|activeDeadlineSeconds): .*\\n" $jobs "" -}}
{{- end -}}
{{ printf "%s\n%s" $jobs .Values.experiment | sha256sum | trunc 16 }}
{{- end }}

{{- /* What cannot be changed in a StatefulSet that exists. */ -}}
{{- define "atoll.volumeChecksum" -}}
{{ printf "%s %s %s" (include "atoll.onVolume" .) .Values.store.volume.size .Values.store.volume.storageClass | sha256sum | trunc 16 }}
{{- end }}

{{- define "atoll.refuseVolumeChange" -}}
{{- $name := printf "%s-coordinator" (include "atoll.name" .) -}}
{{- $old := lookup "apps/v1" "StatefulSet" .Release.Namespace $name | default dict -}}
{{- $found := dig "metadata" "annotations" "atoll/checksum" "" $old -}}
{{- if and $found (ne $found (include "atoll.volumeChecksum" .)) -}}
{{- fail (printf "\n\nThe coordinator exists with another volume (store.volume.size, store.volume.storageClass or store.location), and Kubernetes cannot change the volume of a StatefulSet. To enlarge it: change the claim (`kubectl -n %s edit pvc state-%s-0`), delete the StatefulSet without its pods (`kubectl -n %s delete statefulset %s --cascade=orphan`), and upgrade again. For anything else: install it under another release name, and copy the store with `atoll backup` and `atoll restore`." .Release.Namespace $name .Release.Namespace $name) -}}
{{- end -}}
{{- end }}

{{- /* A size in MiB; nothing for one that is written in other units. */ -}}
{{- define "atoll.mebibytes" -}}
{{- if regexMatch "^[0-9]+(Mi|Gi|Ti)$" . -}}
{{ mul (regexFind "^[0-9]+" . | int64) (get (dict "Mi" 1 "Gi" 1024 "Ti" 1048576) (regexFind "[A-Z]i$" .)) }}
{{- end -}}
{{- end }}

{{- /* A claim that exists may grow. Helm keeps claims over `helm uninstall`, so it may be that of an earlier release. */ -}}
{{- define "atoll.refuseClaimChange" -}}
{{- $name := printf "%s-%s" (include "atoll.name" (index . 0)) (index . 1) -}}
{{- with index . 0 -}}
{{- $old := lookup "v1" "PersistentVolumeClaim" .Release.Namespace $name | default dict -}}
{{- $class := dig "spec" "storageClassName" "" $old -}}
{{- $size := dig "spec" "resources" "requests" "storage" "" $old -}}
{{- $wanted := index $ 2 -}}
{{- $change := "" -}}
{{- if and $class .Values.store.volume.storageClass (ne $class .Values.store.volume.storageClass) -}}
{{- $change = printf "store.volume.storageClass: expected %s, found %s" $class .Values.store.volume.storageClass -}}
{{- else if lt (include "atoll.mebibytes" $wanted | int64) (include "atoll.mebibytes" $size | int64) -}}
{{- $change = printf "%s: expected at least %s, found %s" (ternary "store.volume.size" "batch.export.size" (eq (index $ 1) "state")) $size $wanted -}}
{{- end -}}
{{- if $change -}}
{{- fail (printf "\n\nThe claim %s exists with another volume, and Kubernetes can only enlarge it.\n- %s\nTo use the volume, set what it has. For another volume: install the batch under another release name, and copy the store with `atoll backup` and `atoll restore`. To start with an empty volume, delete the claim: `kubectl -n %s delete pvc %s` deletes its runs and results." $name $change .Release.Namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Whatever batch this release has: Kubernetes changes none, and Helm would replace one of another kind or name without a word. */ -}}
{{- define "atoll.refuseChange" -}}
{{- $name := include "atoll.name" . -}}
{{- $wanted := list -}}
{{- if eq .Values.mode "batch" -}}
{{- $wanted = get (dict "JobSet" (list (printf "JobSet %s" $name)) "Job" (list (printf "Job %s" $name)) "Jobs" (list (printf "Job %s-coordinator" $name) (printf "Job %s-worker" $name))) (include "atoll.batchKind" .) -}}
{{- end -}}
{{- $types := list (list "batch/v1" "Job") -}}
{{- if .Capabilities.APIVersions.Has "jobset.x-k8s.io/v1alpha2" -}}
{{- $types = append $types (list "jobset.x-k8s.io/v1alpha2" "JobSet") -}}
{{- end -}}
{{- range $type := $types -}}
{{- range $old := (lookup (first $type) (last $type) $.Release.Namespace "").items -}}
{{- $labels := dig "metadata" "labels" dict $old -}}
{{- $found := dig "metadata" "annotations" "atoll/checksum" "" $old -}}
{{- if and $found (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) (eq (get $labels "app.kubernetes.io/name") "atoll") -}}
{{- $is := printf "%s %s" (last $type) $old.metadata.name -}}
{{- $change := "" -}}
{{- if not (has $is $wanted) -}}
{{- $change = printf "This release has the batch `%s`, and these values would delete it and create %s in its place (mode, batch.kind, nameOverride or fullnameOverride)." $is (ternary (join " and " $wanted) "a service" (ne (len $wanted) 0)) -}}
{{- else if ne $found (include "atoll.batchChecksum" $) -}}
{{- $change = "This batch exists with another experiment, image or settings, and Kubernetes cannot change them in a Job. Scaling and suspending work (see the NOTES of the chart)." -}}
{{- end -}}
{{- if $change -}}
{{- fail (printf "\n\n%s For anything else: install it under another release name, or `helm uninstall %s` first (volumes are kept, and the run is resumed from them)." $change $.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
