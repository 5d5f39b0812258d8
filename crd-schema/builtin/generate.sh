#!/usr/bin/env bash
# Writes kinds.txt, the kinds of the newest supported release of Kubernetes
# with the fields of their types; older.txt, the differences of each older
# supported release; and merge.txt, how lists and maps are merged.
#
# The fields come from the Go types that the API server decodes into, by
# reflection: the OpenAPI document lacks which fields are pointers, and which
# ones are omitted if they are empty. The newest version is the one in
# tests/minicluster/go.mod. The others are the newest patch releases of
# k8s.io/api in November 2026 (go list -m -versions k8s.io/api).
set -euo pipefail

older=(0.36.6 0.35.10 0.34.13 0.33.13)

cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
export GOTOOLCHAIN=local

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd ../../tests/minicluster
newest=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\)$|\1|p' go.mod)
go run "$here/table.go" >"$work/$newest"

tables=("$work/$newest")
for version in "${older[@]}"; do
  module=$work/module-$version
  mkdir "$module"
  cp "$here/table.go" "$module"
  cd "$module"
  {
    printf 'module lockkeeper.dev/table\n\ngo 1.24.0\n\n'
    for part in api apiextensions-apiserver apimachinery client-go kube-aggregator; do
      printf 'require k8s.io/%s v%s\n' "$part" "$version"
    done
  } >go.mod
  # Version 0.36.6 of the libraries is version 1.36.6 of Kubernetes.
  table=$work/1${version#0}
  go run -mod=mod . >"$table"
  tables+=("$table")
done

cd "$here"
go run differences.go "${tables[@]}" >"$work/differences"
{
  printf '# The kinds of Kubernetes %s. Written by generate.sh.\n' "$newest"
  printf '# kind GROUP/VERSION KIND TYPE INTRODUCED DEPRECATED REMOVED REPLACEMENT\n'
  printf '# type NAME, then for each field: NAME TYPE FLAGS\n'
  printf '# flags: * pointer, ? omitted if empty, ! omitted if zero\n'
  cat "$work/$newest"
} >kinds.txt
{
  printf '# The kinds of older releases of Kubernetes. Written by generate.sh.\n'
  printf '# The lines after a release turn the table of the next newer release into that of\n'
  printf '# this one: they have the form of kinds.txt, and - before a removed kind, type or\n'
  printf '# field. A type that is already there keeps its other fields.\n'
  cat "$work/differences"
} >older.txt

client=$(cd ../../tests/minicluster && go list -m -f '{{.Dir}}' k8s.io/client-go)
{
  printf '# How lists and maps of Kubernetes %s are merged. Written by generate.sh.\n' "$newest"
  printf '# TYPE FIELD RELATION: set, atomic, or the keys of the items; a dot is the type itself\n'
  printf '# All other lists are atomic, all other maps are merged.\n'
  cd ../../tests/minicluster
  go run "$here/merge.go" <"$client/applyconfigurations/internal/internal.go"
} >"$work/merge"
cat "$work/merge" >"$here/merge.txt"
