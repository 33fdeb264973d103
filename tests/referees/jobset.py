"""Checks JobSet objects (stdin, YAML documents) against the types that the JobSet project publishes.

The models come from `kubeflow-trainer-api`, generated from JobSet's own Go types. A key that those do not know is lost
when an object is read and written again, so the comparison finds it. The Jobs inside are printed as Job objects, for
`kubernetes-validate`.
"""

import sys

import yaml
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet


def lost(before, after, path):
    """The paths of everything that is in `before` and not in `after`."""
    if isinstance(before, dict):
        if not isinstance(after, dict):
            return [path]
        return [p for key, value in before.items() for p in lost(value, after.get(key), f"{path}.{key}")]
    if isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            return [path]
        return [p for i, (a, b) in enumerate(zip(before, after)) for p in lost(a, b, f"{path}[{i}]")]
    return [] if after is not None or before is None else [path]


sets = [document for document in yaml.safe_load_all(sys.stdin) if document and document["kind"] == "JobSet"]
assert sets, "expected a JobSet, found none"
jobs = []
for document in sets:
    unknown = lost(document, JobsetV1alpha2JobSet.from_dict(document).to_dict(), "")
    assert not unknown, f"JobSet does not know {unknown}"
    for job in document["spec"]["replicatedJobs"]:
        name = f"{document['metadata']['name']}-{job['name']}-0"
        jobs.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, **job["template"]})
yaml.safe_dump_all(jobs, sys.stdout)
