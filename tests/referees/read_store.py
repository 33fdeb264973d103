"""Reads a store by docs/format.md alone: the standard library, and BLAKE3 from PyPI.

Prints one JSON object for each run: its state, its digest as the journal says and as the records add up to, and the
standing and the champion of each island in its last state.
"""

import json
import pathlib
import struct
import sys
import tomllib

from blake3 import blake3

KINDS = {"events": 1, "commits": 2, "states": 3, "checkpoints": 4, "jobs": 5, "summaries": 6, "artifacts": 7, "labels": 10}
GUESTS = 2**32 - 1


def digest(data):
    return blake3(data).digest()


def parts(name, *pieces):
    hasher = blake3()
    for piece in (name.encode(), *pieces):
        hasher.update(struct.pack("<Q", len(piece)))
        hasher.update(piece)
    return hasher.digest()


def body(path, kind):
    data = path.read_bytes()
    magic, version, found, length = struct.unpack("<8sHHQ", data[:20])
    assert (magic, version, found) == (b"ATOLLOBJ", 2, kind), path
    assert len(data) == 52 + length, path
    assert digest(data[:20] + data[52:]) == data[20:52], path
    return data[52:]


class Value:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count, "ends early"
        self.at += count
        return taken

    def end(self):
        assert self.at == len(self.data), "bytes are left"

    def byte(self):
        return self.take(1)[0]

    def number(self):
        first = self.byte()
        if first < 251:
            return first
        size = {251: 2, 252: 4, 253: 8}[first]
        return int.from_bytes(self.take(size), "little")

    def signed(self):
        number = self.number()
        return number // 2 if number % 2 == 0 else -(number + 1) // 2

    def f32(self):
        return struct.unpack("<f", self.take(4))[0]

    def f64(self):
        return struct.unpack("<d", self.take(8))[0]

    def digest(self):
        return self.take(32)

    def bytes(self):
        return self.take(self.number())

    def text(self):
        return self.bytes().decode()

    def list(self, item):
        return [item() for _ in range(self.number())]

    def optional(self, item):
        return item() if self.byte() else None

    def pair(self, one, other):
        first = one()
        return first, other()

    def standing(self):
        return {"generation": self.number(), "evaluations": self.number(), "best": self.f64()}

    def end_of_run(self):
        return {"epoch": self.number(), "reason": self.number()}

    def head(self):
        return self.number(), self.digest()


def read_event(value):
    kind = value.number()
    n, t = value.number, value.text
    if kind == 0:
        return "created", {"experiment": value.digest(), "text": value.digest(), "semantics": n(), "version": t(), "at": n()}
    if kind == 1:
        owner = (t(), t(), n(), n())
        return "opened", {"owner": owner, "cuts": value.list(n), "batches": n(), "at": n()}
    if kind == 2:
        return "retracted", {"cuts": value.list(n), "reason": t(), "at": n()}
    if kind == 3:
        return "extended", {"budget": t(), "complete": n(), "at": n()}
    if kind == 4:
        return "decided", {"end": value.end_of_run(), "at": n()}
    if kind == 5:
        return "finished", {"end": value.optional(value.end_of_run), "digest": value.digest(), "at": n(), "elapsed": n()}
    if kind == 6:
        return "prioritised", {"priority": value.signed(), "at": n()}
    if kind in (7, 8, 9):
        return ("paused", "continued", "cancelled")[kind - 7], {"at": n()}
    if kind == 10:
        return "failed", {"reason": t(), "at": n()}
    if kind == 11:
        return "lost", {"island": n(), "epoch": n(), "worker": t(), "held": n(), "reason": t(), "at": n()}
    if kind == 12:
        losses = value.list(lambda: (n(), n(), t(), n()))
        return "expired", {"losses": losses, "reason": t(), "at": n()}
    assert kind == 13, kind
    return "retracted jobs", {"jobs": value.list(n), "batches": n(), "reason": t(), "at": n()}


def read_journal(run):
    events, digests = [], []
    last = parts("atoll journal", run.name.encode())
    for number, path in enumerate(sorted((run / "events").iterdir())):
        assert path.name == f"{number:020}", path
        data = body(path, KINDS["events"])
        value = Value(data)
        value.take(16)
        assert value.digest() == last, f"{path}: the chain is broken"
        events.append(read_event(value))
        value.end()
        last = digest(data)
        digests.append(last)
    return events, digests


def read_record(value):
    n = value.number
    record = {"epoch": n(), "digest": value.digest(), "chain": value.digest(), "standing": value.standing()}
    record["took"] = value.list(lambda: (n(), n()))
    start = value.at
    value.list(lambda: (n(), n(), value.f64(), value.f64(), value.f64()))
    value.list(lambda: (n(), n(), n(), n(), n()))
    value.f64()
    n()
    record["statistics"] = value.data[start : value.at]
    record["worker"] = value.text()
    n()
    n()
    return record


def read_commits(run, digests):
    commits = {}
    folder = run / "commits"
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        term, _ = map(int, path.name.split("-"))
        value = Value(body(path, KINDS["commits"]))
        events, last = value.head()
        assert events == 0 or digests[events - 1] == last, f"{path}: the journal is shorter than it was"
        islands = value.list(lambda: value.pair(value.number, lambda: value.list(lambda: read_record(value))))
        value.end()
        commits.setdefault(term, []).append(islands)
    return commits


def join(events, commits):
    islands, attempt, where = {}, 0, {}
    for number, (kind, event) in enumerate(events):
        if kind not in ("opened", "retracted"):
            continue
        for island, cut in enumerate(event["cuts"]):
            records = islands.setdefault(island, {})
            for epoch in [epoch for epoch in records if epoch >= cut]:
                del records[epoch]
        if kind == "retracted":
            attempt += 1
            continue
        for commit in commits.pop(number, []):
            for island, records in commit:
                for record in records:
                    kept = islands.setdefault(island, {}).setdefault(record["epoch"], record)
                    if kept is record:
                        where[island, record["epoch"]] = attempt, number
    assert not commits, "there are commits of terms that the journal does not know"
    return islands, where


def read_population(value, gene):
    count = value.number()
    genes = value.list(gene)
    fitness = value.list(value.f64)
    value.list(value.f32)
    value.optional(lambda: value.list(value.f32))
    assert len(fitness) == count
    return genes, fitness


def read_state(run, island, record, where, is_async, kind):
    attempt, term = where[island, record["epoch"]]
    name = f"{record['epoch']:020}-{attempt:020}-{term if is_async else 0:020}"
    path = run / "states" / f"{island:020}" / name
    if not path.exists():
        return None
    value = Value(body(path, KINDS["states"]))
    assert value.number() == record["epoch"]
    state, departure = value.bytes(), value.bytes()
    value.end()
    left = parts("atoll epoch left", state, departure)
    assert parts("atoll epoch outcome", left, record["statistics"]) == record["digest"], f"{path}: not its record's"
    value = Value(state)
    gene = {"u8": value.byte, "f32": value.f32, "f64": value.f64}[kind]
    standing = value.standing()
    assert standing == record["standing"], f"{path}: its standing is not its record's"
    value.number()
    genes, fitness = read_population(value, gene)
    generation, genome = value.number(), value.list(gene)
    value.list(value.number)
    read_population(value, gene)
    value.bytes()
    value.end()
    return {"standing": standing, "individuals": len(fitness), "generation": generation, "genome": genome}


def read_game(value):
    n = value.number
    game = (n(), value.byte(), n(), n())
    if game[-1] == 4:
        n()
    value.list(value.byte)


def read_result(value):
    if value.number() == 0:
        found = value.digest()
        value.f64(), value.number(), value.number(), value.list(value.f64)
        return found
    start = value.at
    value.list(lambda: (read_game(value), read_game(value)))
    return digest(value.data[start : value.at])


def read_jobs(run, events):
    """The results that count, by the number of the job."""
    openings = [(number, event["batches"]) for number, (kind, event) in enumerate(events) if kind == "opened"]
    retracted, opened = [], 0
    for number, (kind, event) in enumerate(events):
        opened = number if kind == "opened" else opened
        if kind == "retracted jobs":
            retracted.append((set(event["jobs"]), (opened, event["batches"])))
    jobs = {}
    for path in sorted((run / "jobs").iterdir()):
        term, number = map(int, path.name.split("-"))
        assert term in [opening for opening, _ in openings], f"{path}: a term that the journal does not know"
        later = [batches for opening, batches in openings if opening > term]
        value = Value(body(path, KINDS["jobs"]))
        results = value.list(lambda: value.pair(value.number, lambda: read_result(value)))
        value.end()
        if not later or number < later[0]:
            for job, result in results:
                if not any(job in gone and (term, number) < before for gone, before in retracted):
                    jobs.setdefault(job, result)
    return jobs


def read_plan(run, created, events, kind):
    jobs = read_jobs(run, events)
    finished = [event for name, event in events if name == "finished"]
    total = parts(f"atoll {kind} digest", created["experiment"], *(jobs[job] for job in sorted(jobs)))
    return {
        "run": run.name,
        "state": "finished" if finished else "open",
        "digest": finished[-1]["digest"].hex() if finished else None,
        "records": total.hex(),
        "jobs": len(jobs),
    }


def parts_in_order(experiment):
    """The names of a study's parts, in the order of its digest."""
    waiting = {name: part.get("guests") for name, part in experiment["study"].items()}
    names = []
    while waiting:
        ready = [name for name in sorted(waiting, key=str.encode) if waiting[name] in (None, *names)]
        names.append(ready[0])
        del waiting[ready[0]]
    return names, ["tournament"] if "tournament" in experiment else []


def read_guests(run, number, part):
    """The guests of a part: what the study's job made of another part's states."""
    value = Value(body(run / "artifacts" / f"job-{number:010}", KINDS["artifacts"]))
    (made,) = value.list(value.bytes)
    value.end()
    guests = body(part / "artifacts" / "guests", KINDS["artifacts"])
    key = tomllib.loads((part / "experiment.toml").read_text())["guests"]
    assert guests == made and digest(guests).hex() == key, f"{part}: other guests than the job's"


def read_study(run, experiment, events):
    names, games = parts_in_order(experiment)
    digests = {}
    for name in names + games:
        part = run.parent / f"{run.name}.{name}"
        digests[name] = bytes.fromhex(read_run(part)["digest"])
    guests = [name for name in names if "guests" in experiment["study"][name]]
    for name in guests:
        read_guests(run, names.index(name), run.parent / f"{run.name}.{name}")
    finished = [event for kind, event in events if kind == "finished"]
    return {
        "run": run.name,
        "state": "finished" if finished else "open",
        "digest": finished[-1]["digest"].hex() if finished else None,
        "records": parts("atoll study digest", *digests.values()).hex(),
        "parts": list(digests),
        "guests": guests,
    }


def read_labels(run):
    """All labels of a run: those of the newest object."""
    folder = run / "labels"
    newest = max(folder.iterdir(), default=None) if folder.exists() else None
    if newest is None:
        return []
    value = Value(body(newest, KINDS["labels"]))
    labels = [value.text() for _ in range(value.number())]
    value.number()
    value.end()
    return labels


def read_run(run):
    text = (run / "experiment.toml").read_text()
    experiment = tomllib.loads(text)
    events, digests = read_journal(run)
    kind, created = events[0]
    assert kind == "created" and created["semantics"] == 2 and created["text"] == digest(text.encode())
    if "study" in experiment:
        return read_study(run, experiment, events)
    for plan in ("sweep", "tournament"):
        if plan in experiment:
            return read_plan(run, created, events, plan)
    states = {"paused": "paused", "cancelled": "cancelled", "failed": "failed", "finished": "finished"}
    state = "open"
    for kind, event in events:
        if kind == "retracted" and state == "paused":
            continue
        state = states.get(kind, "open" if kind in ("continued", "extended", "retracted") else state)
    islands, where = join(events, read_commits(run, digests))
    gene = {"rastrigin": "f64", "checkers": "f32"}.get(experiment["problem"]["kind"], "u8")
    is_async = experiment.get("migration", {}).get("mode") == "asynchronous"
    told, chains = [], []
    for island, records in sorted(islands.items()):
        chain = created["experiment"]
        for epoch in range(len(records)):
            chain = parts("atoll island", chain, records[epoch]["digest"])
            assert chain == records[epoch]["chain"], f"island {island}, epoch {epoch}: the chain is broken"
        chains.append(chain)
        told.append(read_state(run, island, records[len(records) - 1], where, is_async, gene))
    finished = [event for kind, event in events if kind == "finished"]
    total = parts("atoll run digest", created["experiment"], *chains)
    for path in sorted((run / "summaries").iterdir()) if (run / "summaries").exists() else []:
        # It counts as long as the run has not gone on since.
        if int(path.name) < len(events):
            continue
        value = Value(body(path, KINDS["summaries"]))
        assert value.number() == 0, path
        value.optional(value.standing)
        value.optional(value.number)
        assert value.number() == len(told), path
        value.number()
        assert value.number() == 0 and value.text() and value.digest() == finished[-1]["digest"], path
    return {
        "run": run.name,
        "state": state,
        "digest": finished[-1]["digest"].hex() if finished else None,
        "records": total.hex(),
        "islands": told,
        "labels": read_labels(run),
        "generations": [json.loads(event["budget"])["generations"] for kind, event in events if kind == "extended"],
        "took": {str(island): [record["took"] for _, record in sorted(records.items())] for island, records in islands.items()},
    }


def main():
    for run in sorted((pathlib.Path(sys.argv[1]) / "runs").iterdir()):
        print(json.dumps(read_run(run)))


if __name__ == "__main__":
    main()
