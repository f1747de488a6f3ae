#!/usr/bin/env bash
# Pushes a domain's images to a repository of Google's Artifact Registry. Their names there go to
# standard output, all else to standard error.
set -euo pipefail

readonly COMMAND=docker/push.sh
# shellcheck source=docker/command.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/command.sh"

usage() {
  cat <<'END_OF_USAGE'
Usage: docker/push.sh DOMAIN --repository=REPOSITORY [--flavour=FLAVOUR ...] [--tag=TAG]

Pushes images that docker/build.sh built, as REPOSITORY/DOMAIN-FLAVOUR:TAG, and prints these names.
  --repository  REGION-docker.pkg.dev/PROJECT/REPOSITORY
All others: as for docker/build.sh.
END_OF_USAGE
}

repository=''

read_other() {
  [[ $1 == --repository=* ]] && repository=${1#*=}
}

check_repository() {
  local part='[a-z0-9][a-z0-9._-]*'
  [[ $repository =~ ^[a-z0-9-]+-docker\.pkg\.dev(/$part){2,}$ ]] ||
    fail "--repository: expected REGION-docker.pkg.dev/PROJECT/REPOSITORY, got '$repository'."
}

# Pushes the domain's image of flavour $1.
push() {
  local name remote
  name=$(image_name "$domain" "$1" "$tag")
  remote=$(remote_name "$repository" "$domain" "$1" "$tag")
  docker tag "$name" "$remote" >&2 ||
    fail "docker could not tag $name as $remote; its output is above."
  docker push "$remote" >&2 ||
    fail "docker could not push $remote; its output is above (to log in: gcloud auth" \
      "configure-docker ${repository%%/*})."
  printf '%s\n' "$remote"
}

# Before the first push: all images or none.
require_image() {
  local name
  name=$(image_name "$domain" "$1" "$tag")
  docker image inspect "$name" >/dev/null 2>&1 ||
    fail "$name: expected an image that is built; build it: docker/build.sh $domain --flavour=$1 --tag=$tag"
}

main() {
  if [[ " $* " == *' --help '* ]]; then
    usage
    return
  fi
  read_arguments "$@"
  check_repository
  require_engine
  local flavour
  for flavour in "${wanted[@]}"; do
    require_image "$flavour"
  done
  for flavour in "${wanted[@]}"; do
    push "$flavour"
  done
}

main "$@"
