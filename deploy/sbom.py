"""Prints the software bill of materials of the `atoll` binary, as CycloneDX 1.5 in JSON.

Usage: sbom.py TARGET VERSION. Everything comes from `cargo metadata` and Cargo.lock: the crates that are linked into the
binary for this target, with their licences and checksums. Crates of tests and build scripts are left out.
"""

import json
import os
import subprocess
import sys
import tomllib

target, version = sys.argv[1:]
command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline", "--features=s3", "--filter-platform", target]
metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
with open("Cargo.lock", "rb") as file:
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(file)["package"]}
root = next(p["id"] for p in metadata["packages"] if p["name"] == "atoll" and p["source"] is None)


def linked(node):
    """The crates that a crate is linked with: neither those of its tests nor those of its build script."""
    return sorted(dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


reached, waiting = set(), [root]
while waiting:
    package = waiting.pop()
    if package not in reached:
        reached.add(package)
        waiting.extend(linked(nodes[package]))


def component(package):
    entry = {
        "type": "application" if package["id"] == root else "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


ordered = sorted((packages[id] for id in reached), key=lambda package: (package["name"], package["version"]))
print(
    json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "component": component(packages[root]),
                "properties": [{"name": "target", "value": target}],
            },
            "components": [component(package) for package in ordered if package["id"] != root],
            "dependencies": [
                {
                    "ref": reference(package),
                    "dependsOn": sorted({reference(packages[id]) for id in linked(nodes[package["id"]])}),
                }
                for package in ordered
            ],
        },
        indent=1,
    )
)
assert packages[root]["version"] == version, f"expected version {version}, found {packages[root]['version']}"
