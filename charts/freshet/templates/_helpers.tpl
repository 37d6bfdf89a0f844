{{- define "freshet.name" -}}
{{- .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "freshet.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "freshet.selector" -}}
app.kubernetes.io/name: {{ include "freshet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "freshet.labels" -}}
{{ include "freshet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "freshet.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "freshet.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "freshet.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end }}

{{- define "freshet.subscriberHost" -}}
{{- default (printf "stream.%s" .Values.host) .Values.subscriberHost -}}
{{- end }}

{{- define "freshet.isCluster" -}}
{{- if eq .Values.mode "cluster" }}true{{ end -}}
{{- end }}

{{- define "freshet.isEmbedded" -}}
{{- if and (eq .Values.mode "cluster") (eq .Values.cluster.nats "embedded") }}true{{ end -}}
{{- end }}

{{- define "freshet.isExternal" -}}
{{- if and (eq .Values.mode "cluster") (eq .Values.cluster.nats "external") }}true{{ end -}}
{{- end }}

{{- /* The administration is open, and production lets nobody in without a token. */ -}}
{{- define "freshet.adminToken" -}}
{{- if and .Values.metrics.enabled (eq .Values.environment "production") }}true{{ end -}}
{{- end }}

{{- define "freshet.podTLS" -}}
{{- if and .Values.tls.enabled (eq .Values.tls.termination "pod") }}true{{ end -}}
{{- end }}

{{- /* Mistakes that the schema cannot express. A chart that installs and then does not work is worse than one that refuses. */ -}}
{{- define "freshet.check" -}}
{{- if and (include "freshet.isCluster" .) (not .Values.secrets.existingSecret) -}}
{{- fail (printf "mode cluster needs secrets.existingSecret: a Secret with the key %q, the URL of your PostgreSQL" .Values.secrets.keys.database) -}}
{{- end -}}
{{- if and (eq .Values.environment "production") (not .Values.secrets.existingSecret) -}}
{{- fail (printf "environment production needs secrets.existingSecret: a Secret with the key %q, which replaces the fixed admin password" .Values.secrets.keys.adminPassword) -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (not (include "freshet.isExternal" .)) -}}
{{- fail "autoscaling needs mode cluster with cluster.nats external: nodes with an embedded NATS server cannot come and go" -}}
{{- end -}}
{{- if and .Values.cluster.split (not (include "freshet.isExternal" .)) -}}
{{- fail "cluster.split needs mode cluster with cluster.nats external" -}}
{{- end -}}
{{- if and (include "freshet.isEmbedded" .) (eq (mod (int .Values.cluster.replicas) 2) 0) -}}
{{- fail "cluster.replicas must be odd with cluster.nats embedded: an even number of NATS servers survives no more failures than one less" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled" -}}
{{- end -}}
{{- end }}

{{- define "freshet.secretVariable" -}}
{{- if .root.Values.secrets.existingSecret }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.secrets.existingSecret }}
      key: {{ .key }}
      optional: {{ not .required }}
{{- end }}
{{- end }}

{{- define "freshet.env" -}}
{{- $ := .root -}}
{{- $keys := $.Values.secrets.keys -}}
{{- $production := eq $.Values.environment "production" -}}
- name: FRESHET_ENVIRONMENT
  value: {{ $.Values.environment }}
- name: FRESHET_ROLES
  value: {{ .roles }}
- name: FRESHET_DATA
  value: /data
- name: FRESHET_LOG_FORMAT
  value: json
- name: FRESHET_DRAIN_TIMEOUT
  value: {{ printf "%ds" (int $.Values.drainSeconds) }}
- name: FRESHET_ADMIN_EMAIL
  value: {{ $.Values.admin.email | quote }}
{{- if $.Values.metrics.enabled }}
- name: FRESHET_ADMIN_LISTEN
  value: ":8001"
{{- end }}
{{- if include "freshet.adminToken" $ }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_ADMIN_TOKEN" "key" $keys.adminToken "required" true) }}
{{- end }}
{{- if and $.Values.ingress.enabled (not (dig "subscriber" "public_url" "" $.Values.settings)) }}
- name: FRESHET_SUBSCRIBER_PUBLIC_URL
  value: {{ printf "%s://%s" (ternary "https" "http" $.Values.tls.enabled) (include "freshet.subscriberHost" $) | quote }}
{{- end }}
{{- if $.Values.settings }}
- name: FRESHET_CONFIG
  value: /etc/freshet/freshet.yaml
{{- end }}
{{- if include "freshet.podTLS" $ }}
- name: FRESHET_TLS_CERTIFICATE
  value: /etc/freshet-tls/tls.crt
- name: FRESHET_TLS_KEY
  value: /etc/freshet-tls/tls.key
{{- end }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_ADMIN_PASSWORD" "key" $keys.adminPassword "required" $production) }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_TOKEN_SECRET" "key" $keys.tokenSecret "required" false) }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_TOKEN_PREVIOUS_SECRET" "key" $keys.tokenPreviousSecret "required" false) }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_ACTIVATION_KEY" "key" $keys.activationKey "required" false) }}
{{- if include "freshet.isCluster" $ }}
{{- $database := $keys.database }}
{{- if and (eq .component "subscriber") $keys.readerDatabase }}
{{- $database = $keys.readerDatabase }}
{{- end }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_DATABASE" "key" $database "required" true) }}
- name: FRESHET_GRID_STORAGE
  value: {{ $.Values.cluster.storage }}
{{- end }}
{{- if include "freshet.isExternal" $ }}
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_NATS" "key" $keys.nats "required" true) }}
{{- end }}
{{- if include "freshet.isEmbedded" $ }}
{{- $full := include "freshet.fullname" $ }}
{{- $peers := list }}
{{- range $i := until (int $.Values.cluster.replicas) }}
{{- $peers = append $peers (printf "%s-%d.%s-peers.%s.svc:6222" $full $i $full $.Release.Namespace) }}
{{- end }}
- name: FRESHET_NATS
  value: embedded
- name: FRESHET_NATS_PEERS
  value: {{ join "," $peers | quote }}
- name: FRESHET_NATS_CLUSTER_LISTEN
  value: ":6222"
{{- include "freshet.secretVariable" (dict "root" $ "name" "FRESHET_NATS_SECRET" "key" $keys.natsSecret "required" $production) }}
{{- end }}
{{- with $.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "freshet.podLabels" -}}
{{ include "freshet.selector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- if ne .component "subscriber" }}
freshet.io/gateway: "true"
{{- end }}
{{- if ne .component "api" }}
freshet.io/subscriber: "true"
{{- end }}
{{- end }}

{{- /* freshet.pod is the pod template of every workload. It takes root, component, roles, and claim: whether the data directory is a volume claim. */ -}}
{{- define "freshet.pod" -}}
{{- $ := .root -}}
{{- $component := .component -}}
metadata:
  labels:
    {{- include "freshet.podLabels" . | nindent 4 }}
    {{- with $.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/settings: {{ toYaml $.Values.settings | sha256sum }}
    {{- with $.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "freshet.serviceAccount" $ }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add (int $.Values.preStopSeconds) (int $.Values.drainSeconds) 15 }}
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: freshet
      image: {{ include "freshet.image" $ | quote }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      args: [serve]
      env:
        {{- include "freshet.env" . | nindent 8 }}
      ports:
        {{- if ne .component "subscriber" }}
        - {name: gateway, containerPort: 8000}
        {{- end }}
        {{- if ne .component "api" }}
        - {name: subscriber, containerPort: 6080}
        {{- end }}
        {{- if $.Values.metrics.enabled }}
        - {name: admin, containerPort: 8001}
        {{- end }}
        {{- if include "freshet.isEmbedded" $ }}
        - {name: peers, containerPort: 6222}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources: {{- toYaml $.Values.resources | nindent 8 }}
      startupProbe:
        exec: {command: [/bin/freshet, healthcheck, --live]}
        {{- toYaml $.Values.probes.startup | nindent 8 }}
      livenessProbe:
        exec: {command: [/bin/freshet, healthcheck, --live]}
        {{- toYaml $.Values.probes.liveness | nindent 8 }}
      readinessProbe:
        exec: {command: [/bin/freshet, healthcheck]}
        {{- toYaml $.Values.probes.readiness | nindent 8 }}
      lifecycle:
        preStop:
          sleep: {seconds: {{ int $.Values.preStopSeconds }}}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if $.Values.settings }}
        - {name: settings, mountPath: /etc/freshet, readOnly: true}
        {{- end }}
        {{- if include "freshet.podTLS" $ }}
        - {name: tls, mountPath: /etc/freshet-tls, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
    {{- if not .claim }}
    - {name: data, emptyDir: {sizeLimit: 1Gi}}
    {{- end }}
    {{- if $.Values.settings }}
    - name: settings
      configMap: {name: {{ include "freshet.fullname" $ }}}
    {{- end }}
    {{- if include "freshet.podTLS" $ }}
    - name: tls
      secret: {secretName: {{ $.Values.tls.secretName }}, defaultMode: 0440}
    {{- end }}
  {{- with $.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- if $.Values.topologySpreadConstraints }}
    {{- toYaml $.Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "freshet.selector" $ | nindent 10 }}
          app.kubernetes.io/component: {{ $component }}
    {{- end }}
    {{- end }}
{{- end }}
