"""What the scripts that evolve champions of checkers share: CPU time of a run, games against the frozen ladder, pooled scores."""

import json
import os
import resource
import subprocess
import sys

from protocol import interval


def machine():
    """The processor, as reports name it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{models[0] if models else 'unknown'}, {os.cpu_count()} cores"


def evolve(atoll, name, text, seed):
    """Evolves, and what that took in CPU seconds. Of a run that was killed and resumed only the last part is known: it says so."""
    begun = f"{atoll.store}/{name}-{seed}.begun"
    was_begun = os.path.exists(begun)
    with open(begun, "w", encoding="utf-8"):
        pass
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = atoll.run(name, text, seed)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"run": done["run"], "digest": done["digest"], "games": done["evaluations"], "generations": done["generations"],
            "seconds": round(seconds, 1), "is_resumed": was_begun, "machine": machine()}


def strength(atoll, player, depth, seed, pairs=156, privileges="all"):
    """A player against both material players of as many plies: won, drawn, lost and pairs by opponent."""
    words = [atoll.command, "bench", "strength", player, "--depth", str(depth), "--pairs", str(pairs), "--seed", str(seed),
             "--privileges", privileges, "--store", atoll.store, "--json"]
    print(f"{player}, {depth} plies", file=sys.stderr, flush=True)
    found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {row["opponent"]: {key: row[key] for key in ("wins", "draws", "losses", "pairs")} for row in found["opponents"]}


def pooled(all_pairs):
    """The score of some counts of pairs (those that gave 0, a half, 1, one and a half, 2 points), and half of its 95 % interval."""
    pairs = [sum(counts) for counts in zip(*all_pairs)]
    count = sum(pairs)
    score = sum(number * points / 4 for points, number in enumerate(pairs)) / count
    variance = sum(number * (points / 4 - score) ** 2 for points, number in enumerate(pairs)) / count
    return score, 1.96 * (variance / count) ** 0.5


def score(pairs):
    """The score of counted pairs alone."""
    return pooled([pairs])[0]


def seconds_of(one):
    """CPU seconds for a table: of a resumed run only a lower limit is known."""
    return f"{'at least ' if one['is_resumed'] else ''}{one['seconds']:.0f}"


def paired(ours, theirs):
    """The mean difference of two scores by seed, with its interval over the seeds."""
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return "–"
    mean, half = interval([ours[seed] - theirs[seed] for seed in seeds])
    return f"{mean:+.3f}" if half != half else f"{mean:+.3f} ± {half:.3f}"


def changed(experiment, changes):
    """A copy of an experiment with some keys set, named by their path; `None` takes a key out."""
    copy = {key: changed(value, {}) if isinstance(value, dict) else value for key, value in experiment.items()}
    for path, value in changes.items():
        *tables, key = path.split(".")
        table = copy
        for name in tables:
            table = table[name]
        if value is None:
            del table[key]
        else:
            table[key] = value
    return copy


def as_toml(experiment):
    """An experiment as text: keys of a table first, then the tables in it as inline tables, at the top as tables."""
    def value(one):
        if isinstance(one, dict):
            return "{ " + ", ".join(f"{key} = {value(inner)}" for key, inner in one.items()) + " }"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return json.dumps(one)

    tables = {key: table for key, table in experiment.items() if isinstance(table, dict)}
    lines = [f"{key} = {value(one)}" for key, one in experiment.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {value(one)}" for key, one in table.items())]
    return "\n".join(lines) + "\n"
