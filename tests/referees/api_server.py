"""An API server of Kubernetes, as far as `helm template --dry-run=server` asks: versions, kinds, and objects to look up.

Usage: api_server.py OBJECTS JOBSET, where OBJECTS is a file of YAML documents that exist, and JOBSET is `yes` if its
controller is installed. Prints the path of a kubeconfig, which the reader removes.
"""

import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

KINDS = {
    "v1": ["Secret", "ConfigMap", "Service", "PersistentVolumeClaim", "ServiceAccount", "Pod"],
    "batch/v1": ["Job"],
    "apps/v1": ["StatefulSet", "Deployment"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["PodDisruptionBudget"],
    "autoscaling/v2": ["HorizontalPodAutoscaler"],
}
if sys.argv[2] == "yes":
    KINDS["jobset.x-k8s.io/v1alpha2"] = ["JobSet"]


def plural(kind):
    return kind.lower()[:-1] + "ies" if kind.endswith("y") else kind.lower() + "s"


objects = {}
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document and document["apiVersion"] in KINDS:
        version = document["apiVersion"]
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        name = document["metadata"]["name"]
        objects[f"{root}/namespaces/default/{plural(document['kind'])}/{name}"] = document


collections = {}
for version, kinds in KINDS.items():
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    for kind in kinds:
        collections[f"{root}/namespaces/default/{plural(kind)}"] = kind


def resources(version):
    known = [
        {"name": plural(kind), "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
        for kind in KINDS[version]
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": known}


def groups():
    listed = []
    for version in KINDS:
        if "/" in version:
            shown = {"groupVersion": version, "version": version.split("/")[1]}
            listed.append({"name": version.split("/")[0], "versions": [shown], "preferredVersion": shown})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def answer(path):
    if path == "/version":
        return {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return groups()
    if path == "/api/v1":
        return resources("v1")
    if path.startswith("/apis/") and path[6:] in KINDS:
        return resources(path[6:])
    if path in collections:
        items = [found for place, found in objects.items() if place.rsplit("/", 1)[0] == path]
        return {"kind": collections[path] + "List", "apiVersion": "v1", "metadata": {}, "items": items}
    return objects.get(path)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        found = answer(self.path.split("?")[0])
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        body = json.dumps(found if found is not None else missing).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
config = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "test",
    "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    "users": [{"name": "test", "user": {}}],
}
handle, path = tempfile.mkstemp(suffix=".json")
os.write(handle, json.dumps(config).encode())
os.close(handle)
print(path, flush=True)
server.serve_forever()
