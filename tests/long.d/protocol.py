"""What the scripts of both protocols of checkers share: evolve once, play, read games, judge by seed."""

import json
import os
import subprocess
import sys

# Quantiles of Student's t for a two-sided interval of 95 %, by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def git(*words):
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Atoll:
    """The command, and the store that holds its runs. Whatever was started before is resumed."""

    def __init__(self, name, is_whole):
        self.store = os.environ.get("STORE", f"target/evidence/{name}")
        os.makedirs(self.store, exist_ok=True)
        self.commits = self.begin(is_whole)
        self.parts = []
        self.command = os.environ.get("ATOLL", "target/release/atoll")
        if "ATOLL" not in os.environ:
            subprocess.run(["cargo", "build", "--quiet", "--release", "--workspace"], check=True)
        self.threads = ["--threads", os.environ["THREADS"]] if "THREADS" in os.environ else []

    def begin(self, is_whole):
        """The commits that this store was started and resumed with, the first one first. They are written down before
        the first run: what HEAD is when the last run ends proves nothing of the runs before. Evidence comes from committed
        code only; a part of the protocol may be tried with changes that are not committed, and then says so."""
        is_dirty = bool(git("status", "--porcelain", "--untracked-files=no"))
        if is_dirty and is_whole:
            sys.exit("uncommitted changes: commit them, or narrow the protocol down, so that nothing becomes evidence")
        path = f"{self.store}/commits"
        commits = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                commits = file.read().split("\n")[:-1]
        head = git("rev-parse", "--short", "HEAD") + (" with uncommitted changes" if is_dirty else "")
        if commits[-1:] != [head]:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{head}\n")
            commits.append(head)
        return commits

    def run(self, name, text, seed=None, workers=None):
        """Runs a plan, or resumes it: the object that it prints."""
        path = f"{self.store}/{name}.toml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        words = [self.command, "run", path, "--store", self.store, "--json", *self.threads]
        words += ["--seed", str(seed)] if seed is not None else []
        words += ["--workers", str(workers)] if workers else []
        print(f"{name}{'' if seed is None else f', seed {seed}'}", file=sys.stderr, flush=True)
        with open(f"{self.store}/log", "a", encoding="utf-8") as log:
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=log, text=True)
        return json.loads(done.stdout)

    def games(self, run):
        """The games of a tournament: the headers of each."""
        words = [self.command, "tournament", "games", run, "--store", self.store]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            headers = {}
            for line in process.stdout:
                if line.startswith("["):
                    name, value = line[1:-2].split(" ", 1)
                    headers[name] = value.strip('"')
                elif headers:
                    yield headers
                    headers = {}
        if process.returncode != 0:
            sys.exit(f"expected the games of {run}")


def points(headers, player):
    """What a player got from a game: 1, 0.5 or 0."""
    white = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}[headers["Result"]]
    return white if headers["White"] == player else 1.0 - white


def interval(values):
    """The mean of some values and half of its 95 % interval, by Student's t; no interval of a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan")
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, STUDENT[len(values) - 2] * (variance / len(values)) ** 0.5


def shown(values):
    mean, half = interval(values)
    return f"{mean:+.3f} ± {half:.3f}"


class Count:
    """Won, drawn and lost."""

    def __init__(self, won=0, drawn=0, lost=0):
        self.won, self.drawn, self.lost = won, drawn, lost

    @property
    def results(self):
        return [self.won, self.drawn, self.lost]

    def add(self, got):
        self.won += got == 1.0
        self.drawn += got == 0.5
        self.lost += got == 0.0

    @property
    def games(self):
        return self.won + self.drawn + self.lost

    @property
    def score(self):
        return (self.won + self.drawn / 2) / max(1, self.games)


def header(atoll, title, name, protocol):
    """How a report begins; the protocol must be older than the first run."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    first, *later = atoll.parts
    resumed = f", resumed with {', '.join(later)}" if later else ""
    changed = git("log", "-1", "--format=%h", first.split()[0], "--", f"docs/evidence/{protocol}")
    return [
        f"# {title}",
        "",
        f"Command: `./tests/long {name}`, started with commit {first}{resumed}. Protocol: [{protocol}]({protocol}),",
        f"last changed in commit {changed or 'none'} before the first run.",
        f"Machine: {models[0] if models else 'unknown'}, {os.cpu_count()} cores.",
        "",
    ]


def cluster(atoll, seed, generations, experiments):
    """Each experiment alone and with two worker processes: one digest. Experiments are texts by name."""
    lines = ["## On a cluster", "", f"{generations} generation{'s' if generations > 1 else ''}, seed {seed}, in one process and with two worker processes:", ""]
    store = atoll.store
    for name, text in experiments.items():
        found = []
        for place, workers in (("alone", None), ("cluster", 2)):
            atoll.store = f"{store}/{place}"
            os.makedirs(atoll.store, exist_ok=True)
            found.append(atoll.run(name, text, seed, workers)["digest"])
        lines.append(f"- {name}: `{found[0]}` alone, `{found[1]}` with workers: "
                     f"{'equal' if found[0] == found[1] else 'DIFFERENT'}")
    atoll.store = store
    return [*lines, ""]


def kept(atoll, name, part, is_whole, compute):
    """A complete part of a protocol. The whole protocol keeps its parts in docs/evidence, beside the commits that they were computed
    with, so that a later call, perhaps on another machine, continues with the next part."""
    folder = f"docs/evidence/{name}" if is_whole else f"{atoll.store}/parts"
    path = f"{folder}/{part}.json"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    else:
        found = {"commits": atoll.commits, **compute()}
        os.makedirs(folder, exist_ok=True)
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
        os.replace(f"{path}.tmp", path)
    # The report names each commit once, in the order in which the parts were computed.
    atoll.parts += [commit for commit in found["commits"] if commit not in atoll.parts]
    return found


def write(atoll, name, lines, is_whole, is_last=True):
    """A whole protocol becomes evidence; a part of one stays in its store. What is not the last word is not printed."""
    path = f"docs/evidence/{name}.md" if is_whole else f"{atoll.store}/part.md"
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(f"{path}.tmp", path)
    if not is_last:
        return
    print("\n".join(lines))
    if not is_whole:
        print(f"not the whole protocol: written to {path}, no evidence", file=sys.stderr)
