#!/usr/bin/env bash
# Trains V-trace on Google Research Football on Google Cloud (Vertex AI): gcp/train_football.sh --help
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
PYTHONPATH=$root exec python3 -m gcp.submit football "$@"
