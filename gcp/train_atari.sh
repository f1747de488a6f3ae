#!/usr/bin/env bash
# Trains R2D2 on Atari on Google Cloud (Vertex AI): gcp/train_atari.sh --help
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
PYTHONPATH=$root exec python3 -m gcp.submit atari "$@"
