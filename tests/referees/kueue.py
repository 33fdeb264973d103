"""Checks objects of Kueue (stdin, YAML documents) against the types that Kueue publishes, and prints their names.

The fields are those of `kueue.x-k8s.io/v1beta2`, which Kueue serves since 0.15 (`apis/kueue/v1beta2` in its repository), for the kinds and
fields that an operator of a queue writes.
"""

import json
import sys

import jsonschema
import yaml


def fields(required=(), **known):
    return {"type": "object", "properties": known, "required": list(required), "additionalProperties": False}


def items(of):
    return {"type": "array", "items": of}


def one_of(*names):
    return {"enum": list(names)}


TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
QUANTITY = {"type": ["string", "integer"]}
STOP = one_of("None", "Hold", "HoldAndDrain")
RESOURCE = fields(
    ["name", "nominalQuota"], name=TEXT, nominalQuota=QUANTITY, borrowingLimit=QUANTITY, lendingLimit=QUANTITY
)
FLAVOR = fields(["name", "resources"], name=TEXT, resources=items(RESOURCE))
EXPRESSION = fields(["key", "operator"], key=TEXT, operator=TEXT, values=items(TEXT))
TAINT = fields(["effect", "key"], effect=TEXT, key=TEXT, value=TEXT, timeAdded=TEXT)
TOLERATION = fields(effect=TEXT, key=TEXT, operator=TEXT, value=TEXT, tolerationSeconds={"type": "integer"})
SPECS = {
    "ResourceFlavor": fields(
        nodeLabels=TEXTS, nodeTaints=items(TAINT), tolerations=items(TOLERATION), topologyName=TEXT
    ),
    "ClusterQueue": fields(
        cohortName=TEXT,
        namespaceSelector=fields(matchExpressions=items(EXPRESSION), matchLabels=TEXTS),
        preemption=fields(
            reclaimWithinCohort=one_of("Never", "LowerPriority", "Any"),
            withinClusterQueue=one_of("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
        ),
        queueingStrategy=one_of("StrictFIFO", "BestEffortFIFO"),
        resourceGroups=items(
            fields(["coveredResources", "flavors"], coveredResources=items(TEXT), flavors=items(FLAVOR))
        ),
        stopPolicy=STOP,
    ),
    "LocalQueue": fields(clusterQueue=TEXT, stopPolicy=STOP),
}

named = {}
for one in yaml.safe_load_all(sys.stdin):
    kind = one["kind"]
    schema = fields(
        ["apiVersion", "kind", "metadata", *(["spec"] if kind == "LocalQueue" else [])],
        apiVersion=one_of("kueue.x-k8s.io/v1beta2"),
        kind=TEXT,
        metadata={"type": "object", "required": ["name", *(["namespace"] if kind == "LocalQueue" else [])]},
        spec=SPECS[kind],
    )
    jsonschema.validate(one, schema)
    named[kind] = one
queue = named["ClusterQueue"]
assert named["LocalQueue"]["spec"]["clusterQueue"] == queue["metadata"]["name"]
for group in queue["spec"]["resourceGroups"]:
    for flavor in group["flavors"]:
        assert flavor["name"] == named["ResourceFlavor"]["metadata"]["name"]
        assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]
print(json.dumps({kind: one["metadata"]["name"] for kind, one in named.items()}))
