#!/usr/bin/env bash
# Stops runs that run_local.sh started, as Ctrl-C would: the learner saves a checkpoint, all
# processes end.
#
# Usage: ./stop_local.sh [--logdir=DIR]     (default: every run below runs/ beside this script)
# Exit code: 0 if it stopped at least one run, 1 if none was running.
set -euo pipefail

readonly REPORT_SECONDS=30

# Prints the lock files to look at.
locks() {
  local root
  root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
  case ${1:-} in
    --logdir=?*) printf '%s\n' "${1#--logdir=}/run.lock" ;;
    '') find "$root/runs" -name run.lock 2>/dev/null || true ;;
  esac
}

# A run holds its lock as long as it lives, so a stale file never names a stranger's process.
is_running() { [[ -e $1 ]] && ! flock --shared --nonblock "$1" true; }

# Asks the run with lock file $1 to end, and waits until it has.
stop() {
  local pid
  pid=$(<"$1")
  printf 'stopping %s (process %s) ...\n' "$(dirname "$1")" "$pid"
  kill -TERM "$pid" 2>/dev/null || true # it may end by itself meanwhile
  until flock --shared --timeout "$REPORT_SECONDS" "$1" true; do
    printf 'still saving its checkpoint; to give that up: kill %s\n' "$pid"
  done
}

case ${1:-} in
  '' | --logdir=?*) ;;
  *)
    printf "stop_local.sh: expected --logdir=DIR or nothing, got '%s'.\n" "$1" >&2
    exit 1
    ;;
esac

stopped=0
while IFS= read -r lock; do
  if is_running "$lock"; then
    stop "$lock"
    stopped=$((stopped + 1))
  fi
done < <(locks "$@")

if ((stopped == 0)); then
  echo "no run to stop"
  exit 1
fi
echo "stopped: $stopped"
