"""Runs the searches of match3-genomes and prints their medians and digests as Markdown."""

import csv
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ATOLL, STORE = sys.argv[1], pathlib.Path(sys.argv[2])
SEEDS, GENERATIONS, ENOUGH = range(1, 21), 60, 0.995
TARGETS = [0.05, 0.1, 0.85, 0.9]
SHOWN = [24, 50, 100, 200, 400, 800, 1300]

EXPERIMENT = """
name = "genomes"
problem = {{ kind = "match3", targets = [{target}], plays = {{ least = 1024, most = 8192 }}, genome = {{ kind = "{genome}" }} }}
algorithm = {{ kind = "ga", population = 24, elite = 0.1 }}
islands = {{ count = 1, topology = "isolated" }}
migration = {{ interval = 1 }}
budget = {{ generations = {generations}, target_fitness = {enough} }}
"""


def atoll(*arguments):
    command = [ATOLL, *map(str, arguments), "--store", str(STORE)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def curve(genome, target, seed):
    """The evaluations spent and the best fitness so far, generation by generation, and the run's digest."""
    place = STORE / f"{genome}-{target}-{seed}"
    place.mkdir()
    text = EXPERIMENT.format(genome=genome, target=target, generations=GENERATIONS, enough=ENOUGH)
    (place / "experiment.toml").write_text(text)
    done = json.loads(atoll("run", place / "experiment.toml", "--seed", seed, "--threads", 1, "--json"))
    atoll("export", done["run"], "--to", place / "export")
    points, best = [], 0.0
    with open(place / "export" / "statistics.csv") as file:
        for row in csv.DictReader(file):
            best = max(best, float(row["best"]))
            points.append((int(row["evaluations"]), best))
    return points, done["digest"]


def best_within(points, evaluations):
    return max((best for spent, best in points if spent <= evaluations), default=0.0)


def needed(points):
    return next((spent for spent, best in points if best >= ENOUGH), float("inf"))


def main():
    digests = []
    for target in TARGETS:
        curves = {}
        with ThreadPoolExecutor(2) as pool:
            for genome in ("seed", "cells"):
                found = list(pool.map(lambda seed: curve(genome, target, seed), SEEDS))
                curves[genome] = [points for points, _ in found]
                digests += [(target, genome, seed, digest) for seed, (_, digest) in zip(SEEDS, found)]
        print(f"## Target {target:.0%}\n")
        print("| evaluations | best fitness with seeds | with cells |")
        print("|---|---|---|")
        for evaluations in SHOWN:
            medians = [statistics.median(best_within(points, evaluations) for points in curves[genome])
                       for genome in ("seed", "cells")]
            print(f"| {evaluations} | {medians[0]:.4f} | {medians[1]:.4f} |")
        for genome in ("seed", "cells"):
            found = [needed(points) for points in curves[genome]]
            reached = sum(one != float("inf") for one in found)
            middle = statistics.median(found)
            said = "not reached" if middle == float("inf") else f"after {middle:.0f} evaluations"
            print(f"\nWith {genome}: {said} in the median; {reached} of {len(found)} searches got there.")
        print()
    print("## Digests\n")
    print(f"Seeds {SEEDS[0]} to {SEEDS[-1]} for each target and genome. The last digest is the SHA-256 of the others, a line each.\n")
    print("| target | genome | seed | digest |")
    print("|---|---|---|---|")
    for target, genome, seed, digest in digests:
        print(f"| {target:.0%} | {genome} | {seed} | `{digest}` |")
    joined = hashlib.sha256("".join(f"{digest}\n" for *_, digest in digests).encode()).hexdigest()
    print(f"| all | | | `{joined}` |")


main()
