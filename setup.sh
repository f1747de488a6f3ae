#!/usr/bin/env bash
# Makes ready what a run needs: apt packages, the Python environment of uv.lock, the compiled op.
# What is there already is left alone, so that a second start takes a moment and prints nothing.
#
# Usage: ./setup.sh [--dev] [--domain=NAME] [--print_accelerator]
#   --dev                             also what the tests and checks need
#   --domain=football                 also what this domain needs (NAME/setup.sh, where there is one)
#   --print_accelerator               only prints what SEED_RL_ACCELERATOR is, given or by default
#   PYTHON=python3.12                 the interpreter (default: the first of 3.11 to 3.13 found)
#   SEED_RL_ACCELERATOR=cpu|gpu|tpu   which TensorFlow (default: gpu if nvidia-smi lists one, else cpu);
#                                     none: no TensorFlow, for machines that only run actors
set -euo pipefail

readonly UV_VERSION=0.13.9
readonly BUILD_PACKAGES=(cmake g++ libgrpc++-dev libprotobuf-dev ninja-build pkg-config
  protobuf-compiler protobuf-compiler-grpc)
readonly PYTHON_PACKAGES=(python3 python3-venv)
readonly STAMP=.venv/seed_rl.stamp # one line: what the environment was made from

# A domain's setup.sh may define both anew.
DOMAIN_PACKAGES=()
setup_domain() { :; }

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Prints the interpreter to build the environment with. Where that is one of a virtual environment,
# prints the one below it: the environment must outlive the other.
find_python() {
  local candidate candidates=(.venv/bin/python python3 python3.11 python3.12 python3.13)
  [[ -z ${PYTHON:-} ]] || candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    "$candidate" 2>/dev/null -c '
import ensurepip, os, sys, venv
assert (3, 11) <= sys.version_info < (3, 14)
print(os.path.realpath(sys._base_executable))' && return
  done
  return 1
}

# Prints those of the named apt packages that are not installed.
missing_packages() {
  local package installed
  # shellcheck disable=SC2016  # dpkg-query expands these, not the shell
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -Fxq "$package installed" <<<"$installed" || printf '%s\n' "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: the steps below name what they miss
  local missing wanted=(ca-certificates "${DOMAIN_PACKAGES[@]}") as_root=()
  [[ $(accelerator) == none ]] || wanted+=("${BUILD_PACKAGES[@]}")
  find_python >/dev/null || wanted+=("${PYTHON_PACKAGES[@]}")
  # A domain may name one that the op needs, too.
  mapfile -t missing < <(missing_packages "${wanted[@]}" | awk '!seen[$0]++')
  ((${#missing[@]})) || return 0

  if (($(id -u) != 0)); then
    as_root=(sudo -n)
    sudo -n true 2>/dev/null || fail "packages are missing; install them, then start again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  say "installing with apt (about a minute): ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update </dev/null >/dev/null
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# Prints the extra of pyproject.toml that brings the right TensorFlow, or none.
accelerator() {
  case ${SEED_RL_ACCELERATOR:-} in
    cpu | gpu | tpu | none) printf '%s\n' "$SEED_RL_ACCELERATOR" ;;
    '') if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then echo gpu; else echo cpu; fi ;;
    *) fail "SEED_RL_ACCELERATOR: expected cpu, gpu, tpu or none, got '$SEED_RL_ACCELERATOR'." ;;
  esac
}

install_uv() {
  [[ $(.uv/bin/uv --version 2>/dev/null) != "uv $UV_VERSION"* ]] || return 0
  say "installing uv $UV_VERSION (seconds)"
  "$1" -m venv --clear .uv
  .uv/bin/python -m pip install --quiet "uv==$UV_VERSION"
}

# Brings .venv to the state of uv.lock. $1: "dev" or nothing.
sync_environment() {
  local group=$1 python extra made_from stamp='' options=(--no-default-groups)
  python=$(find_python) || fail "PYTHON: expected a Python 3.11 to 3.13 with its venv module, got" \
    "${PYTHON:-none on the path}; install one and name it with PYTHON=."
  extra=$(accelerator)
  made_from="$extra $python $("$python" -V) $(cat pyproject.toml uv.lock | sha256sum | cut -c1-16)"
  [[ ! -e $STAMP ]] || stamp=$(<"$STAMP")
  # An environment with the dev group serves those who do not need it just as well.
  [[ $stamp != "$made_from dev" && $stamp != "$made_from $group" ]] || return 0

  install_uv "$python"
  # Two flavours of TensorFlow overwrite each other's files, so a change of flavour cleans up; else
  # what users added to the environment stays.
  [[ $stamp != "$extra "* ]] || options+=(--inexact)
  [[ $extra == none ]] || options+=(--extra learner --extra "$extra")
  [[ -z $group ]] || options+=(--group "$group")
  say "installing the Python environment for $extra (20 s to some minutes, for downloads)"
  rm -f "$STAMP"
  # With the system's certificates: a network may have one of its own.
  env -u VIRTUAL_ENV UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never \
    .uv/bin/uv sync --quiet --system-certs --frozen --compile-bytecode \
    --python "$python" "${options[@]}" </dev/null
  printf '%s\n' "$made_from $group" >"$STAMP"
}

main() {
  local argument group='' domain=''
  for argument; do
    case $argument in
      --dev) group=dev ;;
      --domain=*) domain=${argument#*=} ;;
      --print_accelerator)
        accelerator
        exit
        ;;
      *) fail "expected --dev, --domain=NAME or --print_accelerator, got '$argument'." ;;
    esac
  done
  cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
  # A domain may be the user's own, elsewhere. Most need nothing.
  # shellcheck source=football/setup.sh
  [[ ! $domain =~ ^[A-Za-z0-9_]+$ || ! -f $domain/setup.sh ]] || source "$domain/setup.sh"
  exec 9>.setup.lock
  flock -n 9 || {
    say "waiting for another setup.sh in $PWD to end"
    flock 9
  }
  install_packages
  sync_environment "$group"
  if [[ $(accelerator) == none ]]; then
    .venv/bin/python -m seed_rl.grpc.messages_build
  else
    .venv/bin/python -m seed_rl.grpc.build
  fi
  setup_domain
}

main "$@"
