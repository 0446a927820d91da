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
