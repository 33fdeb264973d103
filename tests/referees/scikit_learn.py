"""Clusters points with scikit-learn: the same core points, the same clusters by the same numbers, the same noise.

Standard input: {"cases": [{"name": ..., "points": [[0.5, ...], ...], "epsilon": ..., "min_points": ...,
"core": [true, ...], "labels": [0, null, ...], "kept": 0.9}, ...]}
The last is the share of the points' variance that a plane keeps.
"""

import json
import sys

import numpy
from sklearn.cluster import DBSCAN
from sklearn.decomposition import PCA


def check(case):
    points = numpy.array(case["points"], dtype=numpy.float64)
    theirs = DBSCAN(eps=case["epsilon"], min_samples=case["min_points"], algorithm="kd_tree").fit(points)
    ours = [-1 if label is None else label for label in case["labels"]]
    core = [index for index, is_core in enumerate(case["core"]) if is_core]
    if theirs.core_sample_indices_.tolist() != core:
        sys.exit(f"{case['name']}: core points {theirs.core_sample_indices_.tolist()}, not {core}")
    if theirs.labels_.tolist() != ours:
        sys.exit(f"{case['name']}: labels {theirs.labels_.tolist()}, not {ours}")
    kept = PCA(n_components=2, svd_solver="full").fit(points).explained_variance_ratio_.sum()
    if abs(kept - case["kept"]) > 1e-4:
        sys.exit(f"{case['name']}: a plane keeps {kept}, not {case['kept']}")
    return max(ours) + 1


print(sum(check(case) for case in json.load(sys.stdin)["cases"]))
