#!/usr/bin/env bash
# Trains V-trace on DMLab-30 on Google Cloud (Vertex AI): gcp/train_dmlab.sh --help
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
PYTHONPATH=$root exec python3 -m gcp.submit dmlab "$@"
