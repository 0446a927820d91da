{{- define "pathsieve.selector" -}}
app.kubernetes.io/name: pathsieve
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pathsieve.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pathsieve.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "pathsieve.peers" -}}
{{ .Release.Name }}-peers
{{- end }}

{{- define "pathsieve.alive" -}}
{{- if .Values.security.tlsSecretName -}}
httpGet:
  path: /healthz
  port: http
{{- else -}}
grpc:
  port: 7443
  service: liveness
{{- end }}
{{- end }}

{{- define "pathsieve.ready" -}}
{{- if .Values.security.tlsSecretName -}}
httpGet:
  path: /readyz
  port: http
{{- else -}}
grpc:
  port: 7443
{{- end }}
{{- end }}
