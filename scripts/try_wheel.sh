#!/usr/bin/env bash
# Build the wheel, install it into an empty environment and run its demo in an empty folder.
#   scripts/try_wheel.sh [PYTHON]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${1:-python3}"

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
"$place/venv/bin/python" -W error -c "import elsewise; elsewise.show_versions()"
