"""The four sections of checkers-search, as Markdown."""

import json
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from champions import machine

NEW, OLD, OLD_COMMIT, COMMIT = sys.argv[1:]
DEPTH, PAIRS = int(os.environ.get("DEPTH", "16")), int(os.environ.get("PAIRS", "156"))
PLIES = [int(plies) for plies in os.environ.get("PLIES", "4 6 8").split()]
IS_WHOLE = (DEPTH, PAIRS, PLIES) == (16, 156, [4, 6, 8])
# What was measured once and is true of every build: kept in the report.
TRIED = """## What was tried

Positions visited to depth 11 from 12 positions of games (`sample_positions(5, 12)`) and the initial one, material with
seed 1, tables of 2^20 entries:

| search | nodes |
|---|---|
| exact, two plies at a time | 2,245,425 |
| playing, no reductions | 3,538,749 |
| playing, late moves reduced (kept) | 822,034 |
| and shallow searches 0.9 men outside the window believed | 913,412 |
| and captures without a choice extended | 2,543,645 |

So late moves are reduced, and the other two are left out."""
NETWORK = "shared/tournament/data/learning-1.acp"
# The start, and positions after 4, 8 and 12 plies of ordinary play.
MOVES = ["", "11-15 23-19 8-11 22-17", "11-15 23-19 8-11 22-17 4-8 17-13 15-18 24-20",
         "11-15 23-19 8-11 22-17 4-8 17-13 15-18 24-20 11-15 28-24 8-11 26-23"]


def cpu_seconds(act):
    """What an action returns, and the CPU time of the processes that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = act()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def hub(atoll, player, moves, level):
    """The last depth and nodes that an engine reports before it answers, and how long it took."""
    with subprocess.Popen([atoll, "engine", player], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as engine:
        def say(text):
            engine.stdin.write(text + "\n")
            engine.stdin.flush()

        say("hub")
        say("init")
        for line in engine.stdout:
            if line.startswith("ready"):
                break
        say("new-game")
        say(f'pos moves="{moves}"' if moves else "pos")
        say(f"level {level}")
        start = time.monotonic()
        say("go think")
        depth = nodes = 0
        for line in engine.stdout:
            if line.startswith("error"):
                sys.exit(line)
            if line.startswith("info depth="):
                words = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
                depth, nodes = int(words["depth"]), int(words["nodes"])
            if line.startswith("done"):
                break
        spent = time.monotonic() - start
        say("quit")
    return depth, nodes, spent


def position_after(moves):
    """The position after moves without a capture, as FEN; the engine rejects illegal ones."""
    sides = {"B": set(range(1, 13)), "W": set(range(21, 33))}
    mover, other = "B", "W"
    for move in moves.split():
        start, end = map(int, move.split("-"))
        sides[mover].remove(start)
        sides[mover].add(end)
        mover, other = other, mover
    men = {side: ",".join(map(str, sorted(squares))) for side, squares in sides.items()}
    return f"{mover}:W{men['W']}:B{men['B']}"


def json_of(*words):
    return json.loads(subprocess.run([*map(str, words), "--json"], check=True, capture_output=True, text=True).stdout)


def best(atoll, player, fen, *words):
    return json_of(atoll, "checkers", "best", "--player", player, "--fen", fen, *words)


def verdict(reached):
    return "reached" if reached else "NOT reached"


def knowledge():
    print("## History and the endgame database\n")
    print("`atoll bench strength material --depth 6`: the player who counts pieces, with every privilege (history, and the 4-piece")
    print(f"database wherever it knows the position), against itself; {PAIRS} openings with colours swapped, seed 1.\n")
    print("| plies | opponent | score | interval | drawn |\n|---|---|---|---|---|")
    for depth in (4, 6):
        for row in json_of(NEW, "bench", "strength", "material", "--depth", depth, "--pairs", PAIRS)["opponents"]:
            drawn = row["draws"] / (row["wins"] + row["draws"] + row["losses"])
            print(f"| {depth} | {row['opponent']} | {row['score']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {100 * drawn:.0f} % |")
            if row["opponent"] == "material 6 plain":
                score = row["score"]
    print(f"\nThe target, at least 0.62 against plain material at 6 plies: {verdict(score >= 0.62)}.\n")


def to_a_depth():
    print(f"## To depth {DEPTH} from the start\n")
    print("One thread. Nodes are the same on every machine; seconds are CPU time of this one, with the start of the process.\n")
    print("| player | search | nodes | seconds |\n|---|---|---|---|")
    for name, player in (("material", "material"), ("champion learning-1", NETWORK)):
        found = {}
        for kind, atoll in ((f"{OLD_COMMIT}", OLD), ("now", NEW)):
            done, seconds = cpu_seconds(lambda: best(atoll, player, position_after(""), "--depth", DEPTH))
            found[f"`checkers best`, {kind}"] = (done["nodes"], seconds)
            (_, nodes, _), seconds = cpu_seconds(lambda: hub(atoll, player, "", f"depth={DEPTH}"))
            found[f"`engine`, {kind}"] = (nodes, seconds)
        for search, (nodes, seconds) in found.items():
            print(f"| {name} | {search} | {nodes:,} | {seconds:.2f} |")
        before = [min(numbers) for numbers in zip(*(row for search, row in found.items() if OLD_COMMIT in search))]
        now = found["`engine`, now"]
        shares = [one / max(other, 1e-9) for one, other in zip(now, before)]
        print(f"| {name} | **now, of the less of before** | **{shares[0]:.2f}** | **{shares[1]:.2f}** |")
        if player == "material":
            halves = max(shares) <= 0.5
    print(f"\nThe target, at most half of the time with material: {verdict(halves)}.\n")


def in_a_second():
    print("## Depth in one second\n")
    print("| position after | Hub | seconds it took | `checkers best --milliseconds 1000` |\n|---|---|---|---|")
    reached = True
    for moves in MOVES:
        depth, _, spent = hub(NEW, "material", moves, "move-time=1")
        exact = best(NEW, "material", position_after(moves), "--depth", "64", "--milliseconds", "1000")["depth"]
        reached &= depth >= exact
        print(f"| {len(moves.split())} plies | {depth} | {spent:.2f} | {exact} |")
    print(f"\nThe target, at least the depth of `checkers best`: {verdict(reached)}.\n")


def matches():
    print("## Against players of a fixed depth\n")
    print("The playing search, with as many nodes for a move as the fixed depth takes in the mean of these positions, and with")
    print(f"the time that it takes; {PAIRS} openings with colours swapped. It must not be worse: the interval reaches 0.5.\n")
    print("| plies of the other | limit for a move | score | interval |\n|---|---|---|---|")
    fens = [position_after(moves) for moves in MOVES]
    # A rate from a search that takes much longer than the start of a process.
    start = time.monotonic()
    rate = best(NEW, "material", fens[0], "--depth", "14")["nodes"] / (time.monotonic() - start)
    reached = True
    for plies in PLIES:
        nodes = sum(best(NEW, "material", fen, "--depth", plies)["nodes"] for fen in fens) // len(fens)
        milliseconds = max(1, round(1000 * nodes / rate))
        for limit, words in ((f"{nodes} nodes", ("--nodes", nodes)), (f"{milliseconds} ms", ("--milliseconds", milliseconds))):
            found = json_of(NEW, "checkers", "match", "material", "material", "--pairs", PAIRS, *words, "--opponent-depth", plies)
            reached &= found["high"] >= 0.5
            print(f"| {plies} | {limit} | {found['score']:.3f} | {found['low']:.3f} to {found['high']:.3f} |")
    print(f"\nThe target, never worse than the fixed depth: {verdict(reached)}.\n")


def main():
    path = "docs/evidence/checkers-search.md" if IS_WHOLE else "target/evidence/checkers-search.md"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        standard, sys.stdout = sys.stdout, file
        print("# What the search knows, costs and brings\n")
        print(f"Command: `./tests/long checkers-search`, commit {COMMIT}, against commit {OLD_COMMIT}.")
        print(f"Machine: {machine()}, load {os.getloadavg()[0]:.1f} at the start. Counts of games and nodes do not depend on that.\n")
        for section in (knowledge, to_a_depth, in_a_second, matches):
            section()
            file.flush()
        print(TRIED)
        sys.stdout = standard
    os.replace(f"{path}.tmp", path)
    with open(path, encoding="utf-8") as file:
        print(file.read())


main()
