"""A CronJob with a volume for the history."""

import json

from bulk.audit.schedules.audited import LONGEST_S, Audited, Emitted
from bulk.audit.schedules.times import Times

_VOLUME = "/srv/bulk/audits"
"""Where the claim is: the history and what reads are remembered in."""


def emit(times: Times, audited: Audited) -> Emitted:
    """Return the manifest; texts in it are JSON, which is YAML."""
    text, unit = json.dumps, audited.unit
    history = f"{_VOLUME}/{audited.unit.removeprefix('bulk-audit-')}"
    arguments = audited.command("", f"/srv/bulk/audit/{audited.manifest.name}", history)[1:]
    if not any(option.startswith(("--cache=", "--no-cache")) for option in arguments):
        arguments.append(f"--cache={_VOLUME}/cache")  # a pod's own folder is gone with it
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
              args: {text(arguments)}{_environment(audited)}
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


def _environment(audited: Audited) -> str:
    """Return the lines that take the variables of the audit from the secret; empty where it has none."""
    secrets = "".join(
        f"""
                - name: {json.dumps(name)}
                  valueFrom:
                    secretKeyRef: {{name: {audited.unit}, key: {json.dumps(name)}}}"""
        for name in audited.secrets
    )
    return f"\n              env:{secrets}" if secrets else ""
