#!/usr/bin/env bash
# Build the wheel, install it into an empty environment, and run its demo and the five commands of
# the README in an empty folder.
#   scripts/try_wheel.sh [PYTHON]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${1:-python3}"

root="$PWD"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/venv"
pip() { "$place/venv/bin/python" -m pip -q --disable-pip-version-check "$@"; }
rm -rf dist
pip wheel --no-deps --wheel-dir dist .
pip install dist/elsewise-*.whl

mkdir "$place/empty"
cd "$place/empty"
"$place/venv/bin/elsewise" --version
"$place/venv/bin/elsewise" demo
test -s elsewise-demo/report.html
test -s elsewise-demo/explore.html

"$place/venv/bin/python" "$root/scripts/own_rows.py" .
sed -n '/five commands/,/^```$/p' "$root/README.md" | grep '^elsewise ' > commands.sh
test "$(wc -l < commands.sh)" -eq 4
PATH="$place/venv/bin:$PATH" bash -e commands.sh
test -s run/explore.html

"$place/venv/bin/python" -W error -c "import elsewise; elsewise.show_versions()"
