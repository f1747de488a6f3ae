#!/usr/bin/env bash
# Sets up, checks format, style and types, and runs the test suite. Arguments go to pytest:
#   ./run_tests.sh tests/seed_rl/grpc -k batching
# The last lines are pytest's; the exit code is 0 only if everything passed.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
./setup.sh --dev --domain=football

status=0
.venv/bin/ruff format --check . || status=$?
.venv/bin/ruff check . || status=$?
.venv/bin/mypy || status=$?
.venv/bin/python -m pytest "$@" || status=$?
exit "$status"
