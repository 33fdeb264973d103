"""Depths in one second and matches of checkers-search, as Markdown."""

import json
import subprocess
import sys
import time

ATOLL, PAIRS, PLIES = sys.argv[1], int(sys.argv[2]), [int(plies) for plies in sys.argv[3].split()]
# The start, and positions after 4, 8 and 12 plies of ordinary play.
MOVES = ["", "11-15 23-19 8-11 22-17", "11-15 23-19 8-11 22-17 4-8 17-13 15-18 24-20",
         "11-15 23-19 8-11 22-17 4-8 17-13 15-18 24-20 11-15 28-24 8-11 26-23"]


def hub_depth(moves, seconds):
    """The last depth that the engine reports before it answers, and how long it took."""
    command = [ATOLL, "engine", "material"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
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
        say(f"level move-time={seconds}")
        start = time.monotonic()
        say("go think")
        depth = 0
        for line in engine.stdout:
            if line.startswith("error"):
                sys.exit(line)
            if line.startswith("info depth="):
                depth = int(line.split()[1].split("=")[1])
            if line.startswith("done"):
                break
        spent = time.monotonic() - start
        say("quit")
    return depth, spent


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


def best(fen, *words):
    command = [ATOLL, "checkers", "best", "--player", "material", "--json", "--fen", fen, *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def match(*words):
    command = [ATOLL, "checkers", "match", "material", "material", "--pairs", str(PAIRS), "--json", *map(str, words)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    fens = [position_after(moves) for moves in MOVES]
    print("## Depth in one second\n")
    print("| position after | Hub | seconds it took | `checkers best --milliseconds 1000` |")
    print("|---|---|---|---|")
    for moves, fen in zip(MOVES, fens):
        depth, spent = hub_depth(moves, 1)
        exact = best(fen, "--depth", "64", "--milliseconds", "1000")["depth"]
        print(f"| {len(moves.split())} plies | {depth} | {spent:.2f} | {exact} |")
    print("\n## Against players of a fixed depth\n")
    print("The playing search, with as many nodes for a move as the fixed depth takes in the mean of these positions, and with")
    print(f"the time that it takes; {PAIRS} openings with colours swapped. It must not be worse: the interval reaches 0.5.\n")
    print("| plies of the other | limit for a move | score | interval | not worse |")
    print("|---|---|---|---|---|")
    for plies in PLIES:
        nodes, seconds = 0, 0.0
        for fen in fens:
            begun = time.monotonic()
            nodes += best(fen, "--depth", str(plies))["nodes"]
            seconds += time.monotonic() - begun
        nodes //= len(fens)
        # A rate from a search that takes much longer than the start of a process.
        begun = time.monotonic()
        rate = best(fens[0], "--depth", "13")["nodes"] / (time.monotonic() - begun)
        milliseconds = max(1, round(1000 * nodes / rate))
        for limit, words in ((f"{nodes} nodes", ("--nodes", nodes)), (f"{milliseconds} ms", ("--milliseconds", milliseconds))):
            found = match(*words, "--opponent-depth", plies)
            verdict = "yes" if found["high"] >= 0.5 else "NO"
            print(f"| {plies} | {limit} | {found['score']:.3f} | {found['low']:.3f} to {found['high']:.3f} | {verdict} |")


main()
