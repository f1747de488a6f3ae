#!/usr/bin/env bash
# Sets up what is missing, then trains on this machine: one learner, its actors, a TensorBoard.
set -euo pipefail

usage() {
  cat <<'END'
Usage: ./run_local.sh ENVIRONMENT AGENT NUM_ACTORS [ENVS_PER_ACTOR] [--any_flag=value ...]

  ./run_local.sh atari r2d2 4                       R2D2 on Pong; 4 actors of 8 environments each
  ./run_local.sh atari r2d2 4 16 --game=Breakout    another game; 16 environments in each actor
  ./run_local.sh atari r2d2 4 --logdir=runs/mine    if runs/mine holds a run, it goes on
  ./run_local.sh --docker atari r2d2 4              the same in a container

ENVIRONMENT and AGENT name the file ENVIRONMENT/AGENT_main.py, here or in the current directory.
--docker, as the first argument, runs all of it in the environment's image, which is built if need
be. It knows no environments of your own; of this machine's files it has the runs/ beside this script
and the --logdir of the command line.
Flags of this command; all others go to the learner and to the actors:
  --logdir             checkpoints, TensorBoard data and logs
                       (default: a fresh runs/ENVIRONMENT_AGENT/TIME beside this script)
  --notensorboard      start no TensorBoard
  --tensorboard_port   where it listens on localhost (default: 6006, or a free one)
  --server_address     where the learner listens (default: a unix socket of its own)
All others, with their defaults: ./run_local.sh ENVIRONMENT AGENT --help (or --helpfull)

Ctrl-C, or ./stop_local.sh from elsewhere, saves a checkpoint and ends all processes; a second
Ctrl-C kills them. The exit code is the learner's (128 + n if signal n ended it).
END
}

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
docker=''
if [[ ${1:-} == --docker ]]; then
  docker=$1
  shift
fi

case ${1:-} in
  -h | --help)
    usage
    exit
    ;;
  '')
    usage >&2
    exit 1
    ;;
esac

[[ -z $docker ]] || exec "$root/docker/run.sh" "$@"
# Help and wrong command lines need no engine, whose first build takes minutes; a shell's completion
# leaves a slash behind the name.
domain=()
[[ " $* " =~ \ --?help || ! ${3:-} =~ ^[0-9]+$ ]] || domain=(--domain="${1%/}")
"$root/setup.sh" "${domain[@]}"
# Relative paths among the flags are the caller's, so no change of directory. The repository comes
# before the caller's directory, or a folder there that is called 'agents' would hide ours.
export PYTHONSAFEPATH=1 PYTHONPATH="$root:$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec "$root/.venv/bin/python" -u -m seed_rl.local "$@"
