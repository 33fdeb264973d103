"""Builds a kustomization as `kustomize build` does, as far as those of this repository go, and prints the objects.

Usage: kustomize.py FOLDER [BUILT]. A key of `kustomization.yaml` that is not known here is an error. BUILT is a file with what
`kustomize build` or `kubectl kustomize` itself made of the folder: both must be the same objects.
"""

import os
import sys

import yaml

CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "StorageClass"}


def documents(path):
    with open(path) as file:
        return [document for document in yaml.safe_load_all(file) if document]


def containers(value):
    """All containers below a value."""
    if isinstance(value, list):
        return [found for item in value for found in containers(item)]
    if not isinstance(value, dict):
        return []
    own = [item for key in ("containers", "initContainers") for item in value.get(key) or []]
    return own + [found for item in value.values() for found in containers(item)]


def build(folder):
    kustomization = documents(os.path.join(folder, "kustomization.yaml"))[0]
    unknown = kustomization.keys() - {"apiVersion", "kind", "namespace", "resources", "labels", "images"}
    assert not unknown, f"expected known keys, found {sorted(unknown)}"
    assert (kustomization["apiVersion"], kustomization["kind"]) == (
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
    )
    objects = [one for name in kustomization["resources"] for one in documents(os.path.join(folder, name))]
    for one in objects:
        if one["kind"] not in CLUSTER_WIDE:
            one["metadata"]["namespace"] = kustomization["namespace"]
        for labels in kustomization["labels"]:
            assert labels.keys() == {"pairs"}, f"expected pairs alone, found {sorted(labels)}"
            one["metadata"].setdefault("labels", {}).update(labels["pairs"])
        for image in kustomization["images"]:
            for container in containers(one):
                if container["image"].split("@")[0].rsplit(":", 1)[0] == image["name"]:
                    container["image"] = f"{image['name']}:{image['newTag']}"
    return objects


def by_name(objects):
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


built = build(sys.argv[1])
names = by_name(built)
assert len(names) == len(built), "expected different objects, found two with one kind and name"
if len(sys.argv) > 2:
    assert names == by_name(documents(sys.argv[2])), "kustomize makes other objects of it"
yaml.safe_dump_all(built, sys.stdout, sort_keys=False, explicit_start=True)
