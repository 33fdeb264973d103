#!/bin/sh
# Installs atoll @VERSION@: downloads the archive for this machine, checks its SHA-256 sum, and copies the binary, the
# manual pages, and the completions of bash, zsh and fish.
#
# Usage: ATOLL_RELEASE=URL sh install.sh [DIR]
#   ATOLL_RELEASE  where the files of this release are: an https:// address, or a folder
#   DIR            the folder for the binary [default: ~/.local/bin]; manual pages and completions go to DIR/../share
set -eu

version=@VERSION@
release=${ATOLL_RELEASE:-}
to=${1:-$HOME/.local/bin}

fail() {
    echo "error: $1" >&2
    exit 1
}

[ -n "$release" ] || fail "set ATOLL_RELEASE to the address of the release"
[ "$(uname -s)" = Linux ] || fail "expected Linux, found $(uname -s): build it from source with cargo"
case "$(uname -m)" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "no archive for $(uname -m): build it from source with cargo" ;;
esac
library=gnu
if ldd --version 2>&1 | grep -qi musl; then
    library=musl
fi
name=atoll-$version-$machine-unknown-linux-$library
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() {
    case "$release" in
        # A redirect may not lead to an address without encryption: SHA256SUMS comes from there as well.
        https://*) curl --proto '=https' --fail --silent --show-error --location -o "$work/$1" "$release/$1" ;;
        http://127.0.0.1:*) curl --fail --silent --show-error --location -o "$work/$1" "$release/$1" ;;
        http://*) fail "expected https://, found $release" ;;
        *) cp "$release/$1" "$work/$1" ;;
    esac || fail "cannot get $1 from $release"
}

fetch SHA256SUMS
fetch "$name.tar.gz"
sum=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
[ -n "$sum" ] || fail "SHA256SUMS does not list $name.tar.gz"
echo "$sum  $work/$name.tar.gz" | sha256sum -c - >/dev/null 2>&1 || fail "$name.tar.gz has another SHA-256 sum than SHA256SUMS says"
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$to"
# A program that is running cannot be overwritten, but it can be replaced.
cp "$work/$name/atoll" "$to/.atoll.new"
chmod 755 "$to/.atoll.new"
mv "$to/.atoll.new" "$to/atoll"
echo "$to/atoll"
share=$(cd "$to/.." && pwd)/share
put() {
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2"
    chmod 644 "$2"
}
for page in "$work/$name"/man/*.1; do
    put "$page" "$share/man/man1/$(basename "$page")"
done
put "$work/$name/atoll.bash" "$share/bash-completion/completions/atoll"
put "$work/$name/atoll.zsh" "$share/zsh/site-functions/_atoll"
put "$work/$name/atoll.fish" "$share/fish/vendor_completions.d/atoll.fish"
echo "$share: manual pages, and completions of bash, zsh and fish"
case ":$PATH:" in
    *":$to:"*) ;;
    *) echo "add $to to PATH" >&2 ;;
esac
