#!/usr/bin/env bash
# Writes kinds.txt: the kinds of Kubernetes, with the releases that have them
# and the fields of their types; and merge.txt: how their lists are merged.
#
# The fields come from the Go types that the API server decodes into, by
# reflection: the OpenAPI document lacks which fields are pointers, and which
# ones are omitted if they are empty. The version is the one in
# tests/minicluster/go.mod.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
cd ../../tests/minicluster

version=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\)$|\1|p' go.mod)
table=$(mktemp)
trap 'rm -f "$table"' EXIT
{
  printf '# The kinds of Kubernetes %s. Written by generate.sh.\n' "$version"
  printf '# kind GROUP/VERSION KIND TYPE INTRODUCED DEPRECATED REMOVED REPLACEMENT\n'
  printf '# type NAME, then for each field: NAME TYPE FLAGS\n'
  printf '# flags: * pointer, ? omitted if empty, ! omitted if zero\n'
  GOTOOLCHAIN=local go run "$here/table.go"
} >"$table"
cat "$table" >"$here/kinds.txt"

client=$(go list -m -f '{{.Dir}}' k8s.io/client-go)
{
  printf '# How lists and maps of Kubernetes %s are merged. Written by generate.sh.\n' "$version"
  printf '# TYPE FIELD RELATION: set, atomic, or the keys of the items; a dot is the type itself\n'
  printf '# All other lists are atomic, all other maps are merged.\n'
  GOTOOLCHAIN=local go run "$here/merge.go" <"$client/applyconfigurations/internal/internal.go"
} >"$table"
cat "$table" >"$here/merge.txt"
