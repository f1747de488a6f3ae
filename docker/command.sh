# shellcheck shell=bash
# Sourced. What the commands of this folder share: complaints, the engine, and the arguments DOMAIN,
# --flavour and --tag. Whoever sources it has set COMMAND: what the user calls the command.

# shellcheck source=docker/images.sh
source "$(dirname "${BASH_SOURCE[0]}")/images.sh"

fail() {
  printf '%s: %s\n' "$COMMAND" "$*" >&2
  exit 1
}

require_engine() {
  local answer
  command -v docker >/dev/null ||
    fail "docker: expected the program on the path, found none; see https://docs.docker.com/engine/install."
  answer=$(docker version --format '{{.Server.Version}}' 2>&1 >/dev/null) ||
    fail "docker: expected an engine that answers, got: ${answer%%$'\n'*}; start it, as with: sudo systemctl start docker"
}

# Fails unless $2, which the user calls $1, is one of the lines of standard input.
require_one_of() {
  local known
  known=$(cat)
  # A pattern of several lines would be several patterns.
  [[ $2 != *$'\n'* ]] && grep -Fxq -- "$2" <<<"$known" || fail "$1: expected one of $(paste -sd' ' <<<"$known"), got '$2'."
}

check_tag() {
  [[ $1 =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] ||
    fail "--tag: expected letters, digits, '_', '.' and '-', at most 128, got '$1'."
}

# Reads DOMAIN and the flags into the variables domain, wanted (flavours) and tag; other
# flags go to the function read_other, which returns 1 for those that it does not know.
read_arguments() {
  local argument own
  domain='' wanted=() tag=''
  for argument; do
    case $argument in
      --flavour=*)
        require_one_of --flavour "${argument#*=}" < <(flavours)
        wanted+=("${argument#*=}")
        ;;
      --tag=*)
        tag=${argument#*=}
        check_tag "$tag"
        ;;
      -*) read_other "$argument" || fail "expected a flag of $COMMAND --help, got '$argument'." ;;
      *)
        [[ -z $domain ]] || fail "DOMAIN: expected one, got '$domain' and '$argument'."
        domain=$argument
        ;;
    esac
  done
  require_one_of DOMAIN "$domain" < <(domains)
  if ((${#wanted[@]} == 0)); then
    own=$(own_flavour) || exit
    wanted=("$own")
    [[ $own == actor ]] || wanted+=(actor)
  fi
  : "${tag:=$(default_tag)}"
}
