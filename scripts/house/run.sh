#!/usr/bin/env bash
# Renames and moves the whole tree, in the root of a clean checkout; see README.md beside this file.
set -euo pipefail
here=$(dirname "$0")
copy=$(mktemp -d)
cp "$here"/*.py "$copy"  # the scripts rewrite every Python file of the checkout, these too
trap 'rm -rf "$copy"' EXIT
tidy() { ruff check . "$@" --fix -q >/dev/null || true; ruff format -q .; }
git rm -rq "$here" && git commit -qm "The script that moves the house leaves with it"
python3 "$copy/symbols.py"
tidy
git add -A && git commit -qm "Classes and functions take the field's names, by a script that follows imports"
python3 "$copy/move.py"
python3 "$copy/patch.py"
tidy --select I,F401
python3 "$copy/finish.py"
tidy --select I,F401
git add -A && git commit -qm "A package for each model family, study and page; users write import scant"
ruff check . --output-format concise || true
