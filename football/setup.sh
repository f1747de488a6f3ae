# shellcheck shell=bash
# Sourced by the setup.sh of the root: what football needs beside the rest, the engine gfootball.
# The package index has only its sources. So the first set-up on a machine builds a wheel, and keeps
# it for the next.

readonly GFOOTBALL_VERSION=2.10.2
readonly WHEELS=${XDG_CACHE_HOME:-$HOME/.cache}/seed_rl/wheels
DOMAIN_PACKAGES=(cmake g++ libboost-filesystem-dev libboost-python-dev libboost-thread-dev
  libopengl-dev libsdl2-dev libsdl2-gfx-dev libsdl2-image-dev libsdl2-ttf-dev make)

# Prints the file names of the installed Boost.Python libraries: libboost_python311.so.1.74.0
boost_libraries() {
  PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -o 'libboost_python3[0-9]*\.so\.[0-9.]*' | sort -u
}

# Prints the Boost.Python library that fits the environment's interpreter.
matching_boost() {
  local minor found
  minor=$(.venv/bin/python -c 'import sys; print(sys.version_info.minor)')
  found=$(boost_libraries || true)
  grep "^libboost_python3$minor\.so" <<<"$found" | tail -n 1 && return
  found=$(sed -E 's/libboost_python3([0-9]+).*/python3.\1/' <<<"$found" | paste -sd' ')
  fail "PYTHON: expected an interpreter that Boost.Python is installed for, which football needs" \
    "(${found:-none}), got python3.$minor."
}

# Builds the wheel and puts it into the folder $1.
build_wheel() (
  say "building the football engine (about ten minutes on two cores, once)"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  .venv/bin/python -m venv "$work/venv"
  # The engine's own build looks for 'python3' on the path, and for these packages beside it.
  export PATH=$work/venv/bin:$PATH VIRTUAL_ENV=$work/venv CMAKE_POLICY_VERSION_MINIMUM=3.5
  pip install --quiet 'setuptools<82' wheel psutil six
  pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work" \
    "gfootball==$GFOOTBALL_VERSION" </dev/null >"$work/log" 2>&1 || {
    tail -n 30 "$work/log" >&2
    fail "the football engine did not build; the last lines of its log are above."
  }
  mkdir -p "$1"
  # First under a name of its own: the set-up of another checkout may look for it, or put one there.
  cp "$work"/gfootball-*.whl "$1/new.$$"
  mv "$1/new.$$" "$1/$(cd "$work" && echo gfootball-*.whl)"
)

setup_domain() {
  local installed=(.venv/lib/python3*/site-packages/"gfootball-$GFOOTBALL_VERSION.dist-info")
  [[ ! -e ${installed[0]} ]] || return 0
  local boost wheels
  boost=$(matching_boost)
  wheels=$WHEELS/$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')-$boost
  [[ -e $(echo "$wheels/gfootball-$GFOOTBALL_VERSION"-*.whl) ]] || build_wheel "$wheels"
  .uv/bin/uv pip install --quiet --offline --no-deps --python .venv/bin/python \
    "$wheels/gfootball-$GFOOTBALL_VERSION"-*.whl
}
