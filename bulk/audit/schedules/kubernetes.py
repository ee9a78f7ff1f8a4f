"""A CronJob with a volume for the history."""

import json

from bulk.audit.schedules.audited import LONGEST_S, Audited, Emitted
from bulk.audit.schedules.times import Times

_VOLUME = "/srv/bulk/audits"
"""Where the claim is: the history and what reads are remembered in."""


def emit(times: Times, audited: Audited) -> Emitted:
    """Return the manifest; texts in it are JSON, which is YAML."""
    text, unit = json.dumps, audited.unit
    arguments = _arguments(audited)
    secrets = "".join(
        f"""
                - name: {text(name)}
                  valueFrom:
                    secretKeyRef: {{name: {unit}, key: {text(name)}}}"""
        for name in audited.secrets
    )
    environment = f"\n              env:{secrets}" if secrets else ""
    return Emitted(
        {
            f"{unit}.yaml": f"""apiVersion: batch/v1
kind: CronJob
metadata:
  name: {unit}
spec:
  schedule: {text(times.expression)}
  timeZone: {text(times.zone)}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      activeDeadlineSeconds: {LONGEST_S}
      backoffLimit: 2
      podFailurePolicy:
        rules:
          - action: FailJob
            onExitCodes:
              containerName: audit
              operator: In
              values: [1, 2, 4, 5, 6, 7]
      template:
        spec:
          restartPolicy: Never
          securityContext: {{runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001}}
          containers:
            - name: audit
              image: {text(audited.image)}
              args: {text(arguments)}{environment}
              volumeMounts:
                - {{name: audits, mountPath: {_VOLUME}}}
                - {{name: manifest, mountPath: /srv/bulk/audit}}
          volumes:
            - name: audits
              persistentVolumeClaim: {{claimName: {unit}}}
            - name: manifest
              configMap: {{name: {unit}}}
"""
        },
        [
            f"the claim, the config map (the manifest and what it names) and the secret {unit} are yours to make",
            "a job may start twice or not at all; the audit's own lock keeps two from overlapping on one volume",
        ],
    )


def _arguments(audited: Audited) -> list[str]:
    """Return the arguments of the container; what reads are remembered in is beside the history: a pod's own folder is
    gone with it.
    """
    history = f"{_VOLUME}/{audited.unit.removeprefix('bulk-audit-')}"
    found = audited.command((), f"/srv/bulk/audit/{audited.manifest.name}", history)
    has_cache = any(option.startswith(("--cache=", "--no-cache")) for option in found)
    return found if has_cache else [*found, f"--cache={_VOLUME}/cache"]
