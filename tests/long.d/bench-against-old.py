"""The table of tests/long.d/bench-against-old: lines of `build key json` in the file, what was measured on stdin."""

import json
import os
import statistics
import sys

AT_LEAST = 0.98

rates = {}
for line in open(sys.argv[1]):
    build, key, figures = line.split(" ", 2)
    figure = json.loads(figures)[key]
    rates.setdefault(key, {"unit": figure["unit"], "old": [], "new": []})[build].append(figure["rate"])


def spread(values):
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


lines = [
    "# Rates against an older build",
    "",
    "Runs of `atoll bench KEY --json` of both builds alternate; the medians are compared. A ratio above 1 means that this build",
    "is faster. Rates are per second of CPU time, those of games per second of the clock.",
    "",
    sys.stdin.read().strip(),
    "",
    f"| key | unit | old, median and range | new | ratio (at least {AT_LEAST}) |",
    "|---|---|---|---|---|",
]
slower = []
for key, found in rates.items():
    ratio = statistics.median(found["new"]) / statistics.median(found["old"])
    lines.append(f"| `{key}` | {found['unit']} | {spread(found['old'])} | {spread(found['new'])} | {ratio:.3f} |")
    if ratio < AT_LEAST:
        slower.append(key)
text = "\n".join(lines) + "\n"
print(text, end="")
with open(os.environ["REPORT"], "w") as report:
    report.write(text)
if slower:
    sys.exit(f"slower than {AT_LEAST} of the old build: {', '.join(slower)}")
