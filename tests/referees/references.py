"""Checks that objects (stdin, YAML documents) fit together: every volume, Secret, ConfigMap, claim and account that a pod names
is there, nothing is named twice, and every config is TOML. Arguments are Secrets that others have made.
"""

import sys
import tomllib

import yaml

objects = [one for one in yaml.safe_load_all(sys.stdin) if one]
names = [(one["kind"], one["metadata"]["name"]) for one in objects]
assert len(set(names)) == len(names), f"two objects have one name: {sorted(names)}"
known = {}
for kind, name in names:
    known.setdefault(kind, set()).add(name)
secrets = known.get("Secret", set()) | set(sys.argv[1:])
secrets |= {one["spec"]["secretName"] for one in objects if one["kind"] == "Certificate"}


def pods(value):
    """The specifications of all pods below a value."""
    if isinstance(value, list):
        return [found for item in value for found in pods(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if "containers" in value else []
    return own + [found for item in value.values() for found in pods(item)]


def check(pod, templates):
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    assert len(volumes) == len(pod.get("volumes", [])), f"two volumes have one name: {volumes}"
    account = pod.get("serviceAccountName")
    assert account is None or account in known["ServiceAccount"], account
    for volume in volumes.values():
        for kind, key, there in [
            ("secret", "secretName", secrets),
            ("configMap", "name", known.get("ConfigMap", set())),
            ("persistentVolumeClaim", "claimName", known.get("PersistentVolumeClaim", set())),
        ]:
            assert kind not in volume or volume[kind][key] in there, f"{volume} names none of {sorted(there)}"
    for container in pod["containers"]:
        mounts = container.get("volumeMounts", [])
        assert all(mount["name"] in volumes or mount["name"] in templates for mount in mounts), mounts
        paths = [mount["mountPath"] for mount in mounts]
        assert len(set(paths)) == len(paths), f"two volumes are mounted at one path: {paths}"
        variables = [variable["name"] for variable in container.get("env", [])]
        assert len(set(variables)) == len(variables), f"two variables have one name: {variables}"
        for source in container.get("envFrom", []):
            assert source["secretRef"]["name"] in secrets, source


checked = 0
for one in objects:
    if one["kind"] == "ConfigMap":
        for name, text in one["data"].items():
            if name.endswith(".toml"):
                tomllib.loads(text)
    templates = [claim["metadata"]["name"] for claim in one.get("spec", {}).get("volumeClaimTemplates", [])]
    for pod in pods(one.get("spec", {})):
        check(pod, templates)
        checked += 1
print(checked)
