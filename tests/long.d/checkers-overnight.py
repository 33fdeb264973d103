"""The strength of milestones of checkers-overnight, as Markdown."""

import json
import pathlib
import sys

STORE, INTERVAL, ISLANDS = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
TARGET = 0.74


def interval(pairs):
    """The score of counted pairs, and half of its 95 % interval."""
    count = sum(pairs)
    score = sum(number * points / 4 for points, number in enumerate(pairs)) / count
    variance = sum(number * (points / 4 - score) ** 2 for points, number in enumerate(pairs)) / count
    return score, 1.96 * (variance / count) ** 0.5


def main():
    # By opponent, plies, epoch and island: how many pairs gave 0, a half, 1, one and a half, and 2 points.
    found = {}
    for path in STORE.glob("*.*.*.json"):
        island, epoch, _ = map(int, path.name.split(".")[:3])
        one = json.loads(path.read_text())
        for row in one["opponents"]:
            found.setdefault((row["opponent"], one["depth"]), {}).setdefault(epoch, {})[island] = row["pairs"]
    if not found:
        sys.exit("no milestone was reached: give the run more time")
    verdicts = []
    for (opponent, plies), by_epoch in sorted(found.items()):
        print(f"## {opponent}\n")
        print(f"| generation | {' | '.join(f'island {island}' for island in range(ISLANDS))} | all | interval |")
        print("|---|" + "---|" * (ISLANDS + 2))
        # Only milestones that every island has reached can be compared as a whole.
        rows = []
        for epoch, islands in sorted(by_epoch.items()):
            cells = [f"{interval(islands[island])[0]:.3f}" if island in islands else "–" for island in range(ISLANDS)]
            pooled, half = interval([sum(counts) for counts in zip(*islands.values())])
            if len(islands) == ISLANDS:
                rows.append((epoch * INTERVAL, pooled, half))
            print(f"| {epoch * INTERVAL} | {' | '.join(cells)} | {pooled:.3f} | {pooled - half:.3f} to {pooled + half:.3f} |")
        print()
        if "privileged" in opponent and rows:
            last, score, half = rows[-1]
            reached = "reached" if score >= TARGET else "not reached"
            verdicts.append(f"- {opponent}: {score:.3f} ± {half:.3f} after {last} generations: the target of {TARGET} is {reached}.")
            if len(rows) > 1:
                middle, before, margin = rows[(len(rows) - 1) // 2]
                gain, error = score - before, (half ** 2 + margin ** 2) ** 0.5
                rises = "still rises" if gain > error else "falls" if gain < -error else "is not shown to rise any more"
                verdicts.append(f"  From generation {middle} on: {gain:+.3f} ± {error:.3f}: strength {rises}.")
    print("## The target\n")
    print("\n".join(verdicts))


main()
