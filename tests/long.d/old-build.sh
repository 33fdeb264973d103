# Sourced by what compares this build with an older one, whose commit is `OLD`: sets `new_atoll`, `old_atoll`, `commit`, `old`
# and an empty `folder`. Building both takes ten minutes; `NEW_ATOLL` and `OLD_ATOLL` name programs that were built before.
# shellcheck shell=bash disable=SC2034
old=${OLD:-4fa9b9b}
commit=$(git rev-parse --short HEAD)
folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/old" 2>/dev/null || true; rm -rf "$folder"' EXIT
new_atoll=${NEW_ATOLL:-}
if [ -z "$new_atoll" ]; then
    cargo build --quiet --release
    new_atoll="$PWD/target/release/atoll"
fi
old_atoll=${OLD_ATOLL:-}
if [ -z "$old_atoll" ]; then
    git worktree add --quiet --detach "$folder/old" "$old"
    (cd "$folder/old" && CARGO_TARGET_DIR="$folder/target" cargo build --quiet --release)
    old_atoll="$folder/target/release/atoll"
fi
