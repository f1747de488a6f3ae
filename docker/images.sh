# shellcheck shell=bash
# Sourced. What the images are called: seed_rl/DOMAIN-FLAVOUR:TAG.

ROOT=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
readonly ROOT

# Prints the name for the arguments DOMAIN FLAVOUR TAG, or for the base's stage build or run.
image_name() { printf 'seed_rl/%s-%s:%s\n' "$@"; }

# Prints the name in a registry for the arguments REPOSITORY DOMAIN FLAVOUR TAG.
remote_name() { printf '%s/%s-%s:%s\n' "$@"; }

# Prints them, one a line: of TensorFlow, and 'actor', which has none.
flavours() { printf '%s\n' cpu gpu tpu actor; }

# Prints the domains that images are made for, one a line.
domains() {
  local file
  for file in "$ROOT"/docker/Dockerfile.*; do
    [[ $file == */Dockerfile.base ]] || printf '%s\n' "${file##*.}"
  done
}

# Prints the flavour for this machine; SEED_RL_ACCELERATOR overrides it.
own_flavour() {
  local accelerator
  accelerator=$("$ROOT/setup.sh" --print_accelerator) || return
  [[ $accelerator != none ]] || accelerator=actor
  printf '%s\n' "$accelerator"
}

# Prints the accelerator, in the words of setup.sh, that flavour $1 is for.
flavour_accelerator() { if [[ $1 == actor ]]; then echo none; else printf '%s\n' "$1"; fi; }

# Prints the tag of the checkout as it is: the commit.
default_tag() {
  local commit changes
  # Unpacked inside somebody else's checkout, it is no part of their commit.
  if ! commit=$(git -C "$ROOT" rev-parse --short HEAD 2>/dev/null) ||
    [[ -n $(git -C "$ROOT" rev-parse --show-prefix) ]]; then
    echo unknown
    return
  fi
  changes=$(git --no-optional-locks -C "$ROOT" status --porcelain)
  printf '%s\n' "$commit${changes:+-changed}"
}

# Whether tag $1 stands for one state of the files, so that an image with it is never out of date.
is_lasting() { [[ $1 != unknown && $1 != *-changed ]]; }
