"""Prints how a release was built, as an in-toto statement with a SLSA provenance. It is not signed.

Usage: provenance.py DIR VERSION [MISSING]... The subjects are the files that DIR/SHA256SUMS lists.
"""

import json
import os
import subprocess
import sys

folder, version, *missing = sys.argv[1:]


def said(*command):
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.stdout.strip() if ended.returncode == 0 else ""


with open(os.path.join(folder, "SHA256SUMS")) as file:
    sums = [line.split(maxsplit=1) for line in file]
compiler = dict(line.split(": ", 1) for line in said("rustc", "-vV").splitlines() if ": " in line)
print(
    json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name.strip(), "digest": {"sha256": digest}} for digest, name in sums],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "deploy/release",
                    "externalParameters": {"version": version, "profile": "dist", "features": ["s3", "otlp"]},
                    "internalParameters": {
                        "rustc": compiler.get("release", ""),
                        "llvm": compiler.get("LLVM version", ""),
                        "host": compiler.get("host", ""),
                        "source_date_epoch": int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                    },
                    "resolvedDependencies": [
                        {
                            "name": "source",
                            "digest": {"gitCommit": said("git", "rev-parse", "HEAD")},
                            "annotations": {"modified": bool(said("git", "status", "--porcelain", "-uno"))},
                        },
                        {"name": "Cargo.lock", "digest": {"sha256": said("sha256sum", "Cargo.lock").split(" ")[0]}},
                    ],
                },
                "runDetails": {"builder": {"id": "deploy/release"}, "metadata": {"notBuilt": missing}},
            },
        },
        indent=1,
    )
)
