# Sourced with `name`, `title`, `setting` and `seeds`: evolves examples/$name.toml on each seed, and lets each champion
# play against the material player, 4 and 6 plies ahead, from all 156 openings with colours swapped. Writes
# docs/evidence/$name.md. A run that was already started is resumed: what is stored in target/evidence/$name counts.
set -euo pipefail

store=target/evidence/$name
report=docs/evidence/$name.md
atoll=${ATOLL:-target/release/atoll}
[ -n "${ATOLL:-}" ] || cargo build --quiet --release --workspace
mkdir -p "$store"

field() { python3 -c "import json,sys; print(json.load(sys.stdin)['$1'])"; }

rows= results=
for seed in $seeds; do
    run=$("$atoll" run examples/$name.toml --seed "$seed" --store "$store" --json 2>"$store/$seed.log")
    id=$(field run <<<"$run")
    echo "$run" >>"$store/$seed.jsonl"
    minutes=$(python3 -c "
import json,sys
print(round(sum(json.loads(line)['seconds'] for line in sys.stdin) / 60, 1))" <"$store/$seed.jsonl")
    rows+="| $seed | $minutes | $(field evaluations <<<"$run") | \`$(field digest <<<"$run")\` |"$'\n'
    for depth in 4 6; do
        results+=$("$atoll" checkers match "$id" material --depth $depth --seed "$seed" --store "$store" --json)$'\n'
    done
done

{
    echo "# $title against the material player"
    echo
    echo "Command: \`tests/long $name\`, commit $(git rev-parse --short HEAD),"
    echo "machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) cores."
    echo
    echo "$setting (\`examples/$name.toml\`)."
    echo
    echo "| seed | minutes | games | digest |"
    echo "|---|---|---|---|"
    printf '%s' "$rows"
    echo
    echo "Each champion against the material player (equal counts are ordered at random, by seed), 156 openings with"
    echo "colours swapped. The interval is that of 95 % confidence, judged by pairs of games; pooled over the seeds it is"
    echo "that of all pairs together."
    echo
    echo "| seed | plies | won | drawn | lost | score | interval |"
    echo "|---|---|---|---|---|---|---|"
    python3 -c "
import json, sys
pooled = {}
for line in sys.stdin:
    if not line.strip(): continue
    one = json.loads(line)
    print('| {seed} | {depth} | {wins} | {draws} | {losses} | {score:.3f} | {low:.3f} to {high:.3f} |'.format(**one))
    all = pooled.setdefault(one['depth'], dict(wins=0, draws=0, losses=0, pairs=[0] * 5))
    for key in ('wins', 'draws', 'losses'): all[key] += one[key]
    all['pairs'] = [a + b for a, b in zip(all['pairs'], one['pairs'])]
for depth, all in sorted(pooled.items()):
    n = sum(all['pairs']); games = 2 * n
    score = (all['wins'] + all['draws'] / 2) / games
    variance = sum(c * (i / 4 - score) ** 2 for i, c in enumerate(all['pairs'])) / n
    margin = 1.96 * (variance / n) ** 0.5
    print(f\"| **all** | {depth} | {all['wins']} | {all['draws']} | {all['losses']} | **{score:.3f}** | {score - margin:.3f} to {score + margin:.3f} |\")
" <<<"$results"
} >"$report.tmp"
mv "$report.tmp" "$report"
cat "$report"
