{{- define "atoll.name" -}}
{{ printf "%s-atoll" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "atoll.labels" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "atoll.selector" -}}
app.kubernetes.io/name: atoll
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "atoll.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "atoll.scheme" -}}
{{ if .Values.tls.enabled }}https{{ else }}http{{ end }}
{{- end }}

{{- define "atoll.onVolume" -}}
{{ if not (hasPrefix "s3://" .Values.store.location) }}yes{{ end }}
{{- end }}

{{- define "atoll.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "atoll.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "atoll.coordinatorPod" -}}
automountServiceAccountToken: false
{{- with .Values.coordinator.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: 15
securityContext:
  {{- include "atoll.podSecurity" . | nindent 2 }}
containers:
  - name: atoll
    image: {{ include "atoll.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [coordinator, --config, /etc/atoll/coordinator.toml]
    {{- if not (include "atoll.onVolume" .) }}
    env:
      {{- with .Values.store.s3.region }}
      - { name: AWS_REGION, value: {{ . | quote }} }
      {{- end }}
      {{- with .Values.store.s3.endpoint }}
      - { name: AWS_ENDPOINT_URL, value: {{ . | quote }} }
      {{- end }}
      - { name: AWS_ALLOW_HTTP, value: {{ .Values.store.s3.allowHttp | quote }} }
    {{- with .Values.store.s3.secretName }}
    envFrom:
      - secretRef: { name: {{ . }} }
    {{- end }}
    {{- end }}
    ports:
      - { name: grpc, containerPort: 7440 }
      - { name: http, containerPort: 7441 }
    startupProbe:
      httpGet: { path: /readyz, port: http, scheme: {{ include "atoll.scheme" . | upper }} }
      periodSeconds: 2
      failureThreshold: 300
    readinessProbe:
      httpGet: { path: /readyz, port: http, scheme: {{ include "atoll.scheme" . | upper }} }
      periodSeconds: 5
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
      {{- if .Values.tls.enabled }}
      - { name: tokens, mountPath: /run/atoll/tokens, readOnly: true }
      - { name: tls, mountPath: /run/atoll/tls, readOnly: true }
      {{- end }}
volumes:
  - name: config
    configMap: { name: {{ include "atoll.name" . }}-coordinator }
  {{- if .Values.tls.enabled }}
  - name: tokens
    secret: { secretName: {{ .Values.tokens.secretName }}, defaultMode: 288 }
  - name: tls
    secret: { secretName: {{ .Values.tls.secretName }}, defaultMode: 288 }
  {{- end }}
{{- end }}

{{- define "atoll.workerPod" -}}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 15
securityContext:
  {{- include "atoll.podSecurity" . | nindent 2 }}
containers:
  - name: atoll
    image: {{ include "atoll.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [worker, --config, /etc/atoll/worker.toml]
    env:
      - name: ATOLL_NAME
        valueFrom: { fieldRef: { fieldPath: metadata.name } }
    resources:
      {{- toYaml .Values.workers.resources | nindent 6 }}
    securityContext:
      {{- include "atoll.containerSecurity" . | nindent 6 }}
    volumeMounts:
      - { name: config, mountPath: /etc/atoll, readOnly: true }
      {{- if .Values.tls.enabled }}
      - { name: tokens, mountPath: /run/atoll/tokens, readOnly: true }
      - { name: authority, mountPath: /run/atoll/authority, readOnly: true }
      {{- if .Values.tls.clientAuth }}
      - { name: client, mountPath: /run/atoll/client, readOnly: true }
      {{- end }}
      {{- end }}
volumes:
  - name: config
    configMap: { name: {{ include "atoll.name" . }}-worker }
  {{- if .Values.tls.enabled }}
  - name: tokens
    secret: { secretName: {{ .Values.tokens.secretName }}, defaultMode: 288, items: [{ key: worker, path: worker }] }
  - name: authority
    secret: { secretName: {{ .Values.tls.secretName }}, defaultMode: 288, items: [{ key: ca.crt, path: ca.crt }] }
  {{- if .Values.tls.clientAuth }}
  - name: client
    secret: { secretName: {{ .Values.tls.clientSecretName }}, defaultMode: 288 }
  {{- end }}
  {{- end }}
{{- end }}
