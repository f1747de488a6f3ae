#!/usr/bin/env bash
# Trains a domain on Google Cloud (Vertex AI). Called by one of its names, train_DOMAIN.sh, of which
# each has --help.
set -euo pipefail
domain=${0##*/train_}
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
# By its path: -m would look for it in the caller's directory first.
PYTHONPATH=$root exec python3 "$root/gcp/submit.py" "${domain%.sh}" "$@"
