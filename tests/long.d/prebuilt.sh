# For scripts that call `cargo test` or `cargo nextest`: they use what `./tests/run` has built, rather than compiling the
# workspace once more with another wrapper. Also sets `commit`, which tells whether anything is not committed.
export RUSTC_WORKSPACE_WRAPPER="$PWD/tests/compile" CARGO_INCREMENTAL=0
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit+=" with uncommitted changes"
