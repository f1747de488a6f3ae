#!/usr/bin/env bash
# What `run_local.sh --docker` does: takes run_local.sh's arguments, and runs it all in the image of
# the environment.
set -euo pipefail

readonly COMMAND='run_local.sh --docker'
# shellcheck source=docker/command.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/command.sh"

# The learner's, to save its last checkpoint in.
readonly STOP_SECONDS=120

# Sets flavour to that of this machine.
choose_flavour() {
  flavour=$(own_flavour) || exit
  [[ $flavour != actor ]] ||
    fail "SEED_RL_ACCELERATOR: expected cpu, gpu or tpu, which learners need, got 'none'."
}

# Sets image to the name of one that is there and up to date.
provide_image() {
  local tag
  tag=$(default_tag)
  image=$(image_name "$domain" "$flavour" "$tag")
  ! is_lasting "$tag" || ! docker image inspect "$image" >/dev/null 2>&1 || return 0
  "$ROOT/docker/build.sh" "$domain" --flavour="$flavour" --tag="$tag" >&2 || exit
}

# Adds to options that the image sees the directory $1 as $2.
mount() {
  # In the form of CSV, where a path may hold commas.
  options+=(--mount "type=bind,\"source=${1//\"/\"\"}\",\"target=${2//\"/\"\"}\"")
}

# Makes the directory $2, which the user knows as $1: Docker would make it root's.
make_directory() {
  local error
  error=$(mkdir -p -- "$2" 2>&1) || fail "$1: cannot make '$2': ${error##*: }."
}

# Adds --logdir=$1 to arguments, as an absolute path, and sets logdir to that.
add_logdir() {
  logdir=$1
  # Where it is no directory of this machine, the run itself has something to say about it.
  if [[ -z $logdir || $logdir == *://* ]]; then
    logdir=''
    arguments+=("--logdir=$1")
    return
  fi
  make_directory --logdir "$logdir"
  logdir=$(CDPATH='' cd -- "$logdir" && pwd)
  arguments+=("--logdir=$logdir")
}

# Reads run_local.sh's arguments into arguments and logdir.
read_run_arguments() {
  arguments=() logdir=''
  while (($#)); do
    case $1 in
      -logdir=* | --logdir=*) add_logdir "${1#*=}" ;;
      -logdir | --logdir)
        (($# > 1)) || fail "--logdir: expected a directory, got nothing."
        add_logdir "$2"
        shift
        ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
}

# Sets options, of docker run.
choose_options() {
  # The host's network and process ids: TensorBoard's port is the host's, and stop_local.sh finds the
  # run. With the latter the image's init is not process 1, and has to be told to reap.
  options=(--rm --init --network=host --pid=host --env=TINI_SUBREAPER=1
    --stop-timeout="$STOP_SECONDS" --user="$(id -u):$(id -g)" --env=HOME=/tmp)
  [[ ! -t 0 || ! -t 1 ]] || options+=(--interactive --tty)
  case $flavour in
    gpu) options+=(--gpus=all) ;;
    tpu) options+=(--privileged) ;; # else its devices are not there
  esac
  make_directory runs "$ROOT/runs"
  mount "$ROOT/runs" /seed_rl/runs
  [[ -z $logdir ]] || mount "$logdir" "$logdir"
}

domain=${1:-} domain=${domain%/} # a shell's completion leaves a slash
require_one_of 'ENVIRONMENT (others run without --docker)' "$domain" < <(domains)
choose_flavour
require_engine
read_run_arguments "$@"
provide_image
choose_options
exec docker run "${options[@]}" --entrypoint=/seed_rl/.venv/bin/python "$image" \
  -u -m seed_rl.local "${arguments[@]}"
