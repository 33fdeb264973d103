{{- /* Mistakes that a schema could only describe by a pattern. All of them are reported at once. */ -}}
{{- define "atoll.validate" -}}
{{- $values := .Values -}}
{{- $mistakes := list -}}
{{- $time := "^([0-9]+(ms|s|m|min|h|d) ?)+$" -}}
{{- $times := dict "coordinator.takeoverAfter" $values.coordinator.takeoverAfter "coordinator.lease" $values.coordinator.lease "coordinator.linger" $values.coordinator.linger "coordinator.awaitWorker" $values.coordinator.awaitWorker -}}
{{- range $pod, $keys := dict "coordinator" (list "hedge_after" "reload_every" "stall") "workers" (list "reload_every") -}}
{{- range $key := $keys -}}
{{- with get (index $values $pod "settings") $key -}}
{{- $_ := set $times (printf "%s.settings.%s" $pod $key) . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $times -}}
{{- if not (regexMatch $time $value) -}}
{{- $mistakes = append $mistakes (printf "%s: expected a time such as 15s, found `%s`" $key $value) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := dict "coordinator.giveUpAfter" $values.coordinator.giveUpAfter "workers.giveUpAfter" $values.workers.giveUpAfter -}}
{{- if not (or (eq $value "never") (regexMatch $time $value)) -}}
{{- $mistakes = append $mistakes (printf "%s: expected a time such as 15s, or never, found `%s`" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "^[0-9]{1,2}ms$" $values.coordinator.lease -}}
{{- $mistakes = append $mistakes (printf "coordinator.lease: expected at least 100ms, found `%s`" $values.coordinator.lease) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "atoll.name" .)) -}}
{{- $mistakes = append $mistakes (printf "fullnameOverride, nameOverride or the name of the release: expected names of a-z, 0-9 and - that begin with a letter, found `%s`" (include "atoll.name" .)) -}}
{{- end -}}
{{- with get $values.coordinator.settings "audit" -}}
{{- if not (regexMatch "^(auto|0?\\.[0-9]+|[01](\\.0+)?)$" (toString .)) -}}
{{- $mistakes = append $mistakes (printf "coordinator.settings.audit: expected auto, or a share from 0 to 1, found `%v`" .) -}}
{{- end -}}
{{- end -}}
{{- if and $values.tls.issuerRef (not $values.tls.issuerRef.name) -}}
{{- $mistakes = append $mistakes "tls.issuerRef.name: expected the name of a cert-manager issuer, found none" -}}
{{- end -}}
{{- if and (eq $values.mode "batch") (gt (int $values.coordinator.replicas) 1) -}}
{{- $mistakes = append $mistakes (printf "coordinator.replicas: expected 1 with mode: batch, found %d: a Job replaces its coordinator itself" (int $values.coordinator.replicas)) -}}
{{- end -}}
{{- range $key, $value := dict "store.volume.size" $values.store.volume.size "batch.export.size" $values.batch.export.size -}}
{{- if not (regexMatch "^[0-9]+(Mi|Gi|Ti)$" $value) -}}
{{- $mistakes = append $mistakes (printf "%s: expected a size such as 10Gi, found `%s`" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^(/var/lib/atoll|s3://[A-Za-z0-9._-]{3,63}(/.*)?)$" $values.store.location) -}}
{{- $mistakes = append $mistakes (printf "store.location: expected /var/lib/atoll or s3://BUCKET/PREFIX, found `%s`" $values.store.location) -}}
{{- end -}}
{{- if not (regexMatch "^(https?://.+)?$" $values.store.s3.endpoint) -}}
{{- $mistakes = append $mistakes (printf "store.s3.endpoint: expected http://HOST or https://HOST, found `%s`" $values.store.s3.endpoint) -}}
{{- end -}}
{{- if not (regexMatch "^(sha256:[0-9a-f]{64})?$" $values.image.digest) -}}
{{- $mistakes = append $mistakes (printf "image.digest: expected sha256: and 64 hexadecimal digits, found `%s`" $values.image.digest) -}}
{{- end -}}
{{- if and $values.tls.clientAuth (not $values.tls.enabled) -}}
{{- $mistakes = append $mistakes "tls.clientAuth: expected tls.enabled as well, found false" -}}
{{- end -}}
{{- if and $values.tls.existingSecret $values.tls.clientAuth (not $values.tls.existingClientSecret) -}}
{{- $mistakes = append $mistakes "tls.existingClientSecret: expected a Secret beside tls.existingSecret and tls.clientAuth, found none" -}}
{{- end -}}
{{- if and $values.tls.clientAuth $values.tls.existingClientSecret (not $values.tls.existingSecret) (not $values.tls.issuerRef) -}}
{{- $mistakes = append $mistakes "tls.existingClientSecret: expected tls.existingSecret or tls.issuerRef beside it, found neither: the authority that the chart makes has not signed it" -}}
{{- end -}}
{{- if not (regexMatch "^([0-9]+(\\.[0-9]+){3}|[0-9a-f:]*:[0-9a-f:]*)$" $values.listenAddress) -}}
{{- $mistakes = append $mistakes (printf "listenAddress: expected an address such as 0.0.0.0 or ::, found `%s`" $values.listenAddress) -}}
{{- end -}}
{{- range $values.service.hosts -}}
{{- if not (regexMatch "^(https://)?[^/:*, ]+$|^https://[^/*, ]+$" .) -}}
{{- $mistakes = append $mistakes (printf "service.hosts: expected names without ports, or addresses of proxies such as https://atoll.example, found `%s`" .) -}}
{{- end -}}
{{- end -}}
{{- /* Every namespace has this ConfigMap: where it is found, a cluster answers. */ -}}
{{- if lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt" -}}
{{- $tokens := list "tokens.existingSecret" $values.tokens.existingSecret (include "atoll.hasTokens" .) (list "worker" "operator" "metrics") -}}
{{- $server := list "tls.existingSecret" $values.tls.existingSecret $values.tls.enabled (list "tls.crt" "tls.key" "ca.crt") -}}
{{- $client := list "tls.existingClientSecret" $values.tls.existingClientSecret $values.tls.clientAuth (list "tls.crt" "tls.key") -}}
{{- $store := list "store.s3.secretName" $values.store.s3.secretName (not (include "atoll.onVolume" .)) list -}}
{{- range $named := list $tokens $server $client $store -}}
{{- if and (index $named 1) (index $named 2) -}}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace (index $named 1) -}}
{{- if not $secret -}}
{{- $mistakes = append $mistakes (printf "%s: expected a Secret of namespace %s, found none named `%s`" (index $named 0) $.Release.Namespace (index $named 1)) -}}
{{- else -}}
{{- range $key := index $named 3 -}}
{{- if not (hasKey ($secret.data | default dict) $key) -}}
{{- $mistakes = append $mistakes (printf "%s: expected the key `%s` in the Secret `%s`, found none" (index $named 0) $key (index $named 1)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (include "atoll.isOneJob" .) (include "atoll.onVolume" .) -}}
{{- $mistakes = append $mistakes "batch.kind: expected a store in S3 (store.location: s3://BUCKET/PREFIX) with Job, found a volume, which only one of its pods could mount" -}}
{{- end -}}
{{- if and (eq $values.mode "batch") $values.batch.queueName (eq (include "atoll.batchKind" .) "Jobs") -}}
{{- $mistakes = append $mistakes (printf "batch.queueName: expected batch.kind JobSet or Job, found %s: a queue admits two Jobs one by one, and one could wait for the other without end" (ternary "Jobs" "Auto, but no JobSet controller (jobset.x-k8s.io/v1alpha2)" (eq $values.batch.kind "Jobs"))) -}}
{{- end -}}
{{- range $pod := list "coordinator" "workers" -}}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if hasKey (index $values $pod "podLabels") $label -}}
{{- $mistakes = append $mistakes (printf "%s.podLabels: expected labels of your own, found `%s`, by which Services and policies of the chart find the pod" $pod $label) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (index $values $pod "podAnnotations") "checksum/config" -}}
{{- $mistakes = append $mistakes (printf "%s.podAnnotations: expected annotations of your own, found `checksum/config`, by which the chart restarts the pod" $pod) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$" $values.batch.queueName) -}}
{{- $mistakes = append $mistakes (printf "batch.queueName: expected the name of a LocalQueue (at most 63 of a-z, 0-9 and -), found `%s`" $values.batch.queueName) -}}
{{- end -}}
{{- range $number, $line := splitList "\n" $values.experiment -}}
{{- if regexMatch "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x{9f}\\x{2028}\\x{2029}\\x{feff}]" $line -}}
{{- $mistakes = append $mistakes (printf "experiment: expected text, found a control character, a line separator or a byte order mark in line %d" (add1 $number)) -}}
{{- end -}}
{{- end -}}
{{- $accounts := list $values.coordinator.serviceAccount $values.workers.serviceAccount -}}
{{- if and (first $accounts).create (last $accounts).create (first $accounts).name (eq (first $accounts).name (last $accounts).name) -}}
{{- $mistakes = append $mistakes (printf "workers.serviceAccount.create: expected false, as coordinator.serviceAccount creates `%s` for both, found true" (last $accounts).name) -}}
{{- end -}}
{{- if and (eq (get $values.coordinator.settings "viewer_token_file" | toString) "/run/atoll/tokens/viewer") (not $values.tokens.existingSecret) -}}
{{- $mistakes = append $mistakes "coordinator.settings.viewer_token_file: expected tokens.existingSecret beside it, with the key `viewer`, found none: the Secret of the chart has no such key" -}}
{{- end -}}
{{- if lt (int $values.workers.autoscaling.maxReplicas) (int $values.workers.autoscaling.minReplicas) -}}
{{- $mistakes = append $mistakes "workers.autoscaling.maxReplicas: expected at least minReplicas, found fewer" -}}
{{- end -}}
{{- if $mistakes -}}
{{- fail (printf "\n\nThese values cannot be used:\n- %s" (join "\n- " $mistakes)) -}}
{{- end -}}
{{- end }}
