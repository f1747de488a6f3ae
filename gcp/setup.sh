#!/usr/bin/env bash
# Checks that this machine and a Google Cloud project are ready for gcp/train_*.sh. It changes
# nothing: each thing that is missing gets one sentence, with the command that mends it.
#
# Usage: gcp/setup.sh [--project=PROJECT] [--region=REGION] [--bucket=BUCKET] [--no_images]
#   PROJECT   default: gcloud's
#   REGION    of job, bucket and images (default: us-central1)
#   BUCKET    for checkpoints, without gs:// (default: PROJECT-seed-rl)
#   --no_images: none are to be built, so that docker is not needed
set -euo pipefail

readonly REPOSITORY=seed-rl
readonly APIS=(aiplatform.googleapis.com artifactregistry.googleapis.com storage.googleapis.com)

fail() {
  printf 'gcp/setup.sh: %s\n' "$*" >&2
  exit 1
}

check_tool() {
  command -v "$1" >/dev/null || fail "$1: expected this program on the path, got none; $2"
}

check_tools() {
  check_tool gcloud 'install it: https://cloud.google.com/sdk/docs/install'
  check_tool openssl 'run: sudo apt-get install openssl'
}

check_docker() {
  check_tool docker 'install it: https://docs.docker.com/engine/install'
  docker version >/dev/null 2>&1 || fail "docker: expected an engine that answers, got none; run:" \
    "sudo systemctl start docker (or give pushed images: gcp/train_*.sh --image_tag)"
}

check_login() {
  local account
  account=$(gcloud auth list --filter=status:ACTIVE --format='value(account)' 2>/dev/null || true)
  [[ -n $account ]] || fail "gcloud: expected a login, got none; run: gcloud auth login"
}

check_project() {
  [[ -n $1 && $1 != '(unset)' ]] ||
    fail "--project: expected one, or gcloud's, got none; run: gcloud config set project PROJECT"
  gcloud projects describe "$1" >/dev/null 2>&1 ||
    fail "--project: expected one that this login can see, got '$1'; list them: gcloud projects list"
}

check_apis() {
  local enabled api missing=()
  enabled=$(gcloud services list --enabled --project="$1" --format='value(config.name)') ||
    fail "--project: expected one whose services this login may list, got '$1'; see:" \
      "gcloud projects get-iam-policy $1"
  for api in "${APIS[@]}"; do
    grep -Fxq "$api" <<<"$enabled" || missing+=("$api")
  done
  ((!${#missing[@]})) || fail "--project: expected $1 to have ${missing[*]} enabled, got them" \
    "disabled; run: gcloud services enable ${missing[*]} --project=$1"
}

check_region() {
  gcloud ai custom-jobs list --project="$1" --region="$2" --limit=1 >/dev/null 2>&1 ||
    fail "--region: expected one with Vertex AI custom training that this login may use, got '$2';" \
      "see what it says: gcloud ai custom-jobs list --project=$1 --region=$2"
}

check_bucket() {
  gcloud storage buckets describe "gs://$3" >/dev/null 2>&1 ||
    fail "--bucket: expected a bucket that this login can see, got '$3';" \
      "run: gcloud storage buckets create gs://$3 --project=$1 --location=$2"
}

check_repository() {
  gcloud artifacts repositories describe "$REPOSITORY" --project="$1" --location="$2" \
    >/dev/null 2>&1 || fail "--region: expected the image repository $REPOSITORY in $2, got none;" \
    "run: gcloud artifacts repositories create $REPOSITORY --repository-format=docker" \
    "--project=$1 --location=$2"
}

main() {
  local argument project='' region=us-central1 bucket='' images=yes
  for argument; do
    case $argument in
      --project=*) project=${argument#*=} ;;
      --region=*) region=${argument#*=} ;;
      --bucket=*) bucket=${argument#*=} ;;
      --no_images) images=no ;;
      -h | --help)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit
        ;;
      *) fail "expected --project=, --region=, --bucket= or --no_images, got '$argument'." ;;
    esac
  done
  check_tools
  [[ $images == no ]] || check_docker
  check_login
  project=${project:-$(gcloud config get-value project 2>/dev/null || true)}
  check_project "$project"
  check_apis "$project"
  check_region "$project" "$region"
  check_bucket "$project" "$region" "${bucket:-$project-seed-rl}"
  check_repository "$project" "$region"
  echo "gcp/setup.sh: $project in $region is ready."
}

main "$@"
