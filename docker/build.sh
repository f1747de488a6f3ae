#!/usr/bin/env bash
# Builds a domain's images. Their names go to standard output, all else to standard error.
set -euo pipefail

readonly COMMAND=docker/build.sh
# shellcheck source=docker/command.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/command.sh"

usage() {
  cat <<'END_OF_USAGE'
Usage: docker/build.sh DOMAIN [--flavour=FLAVOUR ...] [--tag=TAG]

Builds the images seed_rl/DOMAIN-FLAVOUR:TAG and prints their names.
  DOMAIN        the ending of a docker/Dockerfile.DOMAIN
  --flavour     cpu, gpu, tpu: with TensorFlow for that; actor: small, without TensorFlow
                (default: gpu if nvidia-smi lists one, else cpu; and actor)
  --tag         (default: the commit; with '-changed' behind it if files differ from it)
END_OF_USAGE
}

read_other() { return 1; }

# Builds the image with name $1 from docker/Dockerfile.$2; the other arguments go to docker.
build() {
  local name=$1 file=$ROOT/docker/Dockerfile.$2
  shift 2
  DOCKER_BUILDKIT=1 docker build --tag="$name" --file="$file" "$@" "$ROOT" >&2 ||
    fail "docker could not build $name; its output is above."
}

# Builds the domain's image of flavour $1.
build_flavour() {
  local stage flavour=$1 name
  for stage in build run; do
    build "$(image_name "$stage" "$flavour" "$tag")" base --target="$stage" \
      --build-arg=SEED_RL_ACCELERATOR="$(flavour_accelerator "$flavour")"
  done
  name=$(image_name "$domain" "$flavour" "$tag")
  build "$name" "$domain" \
    --build-arg=BUILD_IMAGE="$(image_name build "$flavour" "$tag")" \
    --build-arg=RUN_IMAGE="$(image_name run "$flavour" "$tag")"
  printf '%s\n' "$name"
}

main() {
  if [[ " $* " == *' --help '* ]]; then
    usage
    return
  fi
  read_arguments "$@"
  require_engine
  local flavour
  for flavour in "${wanted[@]}"; do
    build_flavour "$flavour"
  done
}

main "$@"
