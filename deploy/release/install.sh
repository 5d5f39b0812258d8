#!/bin/sh
# Installs the binary of lockkeeper from a release: install.sh --from ADDRESS-OR-FOLDER --version V (--key FILE | --no-signature)
# [--to FOLDER] [--dry-run].
#
#   --from          where the files of the release are: an https address, or a folder
#   --version       the version, such as 0.1.0
#   --key           the public key of the releases, from another place than the release
#   --no-signature  verify the checksum only
#   --to            the folder of the binary; ~/.local/bin by default
#   --dry-run       print the steps, and write nothing
#
# Each step is printed. The script writes one file, TO/lockkeeper, never calls sudo, and changes no file of your shell. It
# needs sh, curl (for an address), sha256sum, tar, and openssl 3 for the signature.
set -eu

from='' version='' key='' signature=yes to=${HOME:-}/.local/bin dry=no

say() { printf 'install: %s\n' "$*"; }
fail() { printf 'install: %s\n' "$*" >&2; exit 1; }
usage() {
  printf 'install: %s\n' "$*" >&2
  sed -n '2,/^set -eu/{/^set/d;s/^# \{0,1\}//;p;}' "$0" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  case $1 in
    --from | --version | --key | --to)
      [ $# -ge 2 ] || usage "$1 needs a value"
      case $1 in --from) from=$2 ;; --version) version=$2 ;; --key) key=$2 ;; --to) to=$2 ;; esac
      shift
      ;;
    --no-signature) signature=no ;;
    --dry-run) dry=yes ;;
    --help) usage "the options are:" ;;
    *) usage "unknown option $1" ;;
  esac
  shift
done
[ -n "$from" ] || usage "--from is missing"
[ -n "$version" ] || usage "--version is missing"
case $version in *[!0-9A-Za-z.-]*) usage "$version is not a version" ;; esac
case $from in
  http://*) usage "$from is not encrypted; use https" ;;
esac
[ "$signature" = no ] || [ -n "$key" ] || usage "--key is missing; --no-signature verifies the checksum only"

[ "$(uname -s)" = Linux ] || fail "there are binaries for Linux only; elsewhere, build it: cargo install --locked --path cli"
case $(uname -m) in
  x86_64 | amd64) architecture=amd64 ;;
  aarch64 | arm64) architecture=arm64 ;;
  *) fail "there is no binary for $(uname -m); build it: cargo install --locked --path cli" ;;
esac
name=lockkeeper-$version-linux-$architecture

for tool in sha256sum tar; do command -v "$tool" >/dev/null || fail "$tool is missing"; done
[ "$signature" = no ] || command -v openssl >/dev/null || fail "openssl is missing, which verifies the signature"

say "read SHA256SUMS$([ "$signature" = no ] || printf ', SHA256SUMS.sig') and $name.tar.gz from $from"
if [ "$signature" = yes ]; then say "verify the signature of SHA256SUMS with $key"; else say "do NOT verify a signature"; fi
say "verify the checksum of $name.tar.gz"
say "write $to/lockkeeper$([ ! -e "$to/lockkeeper" ] || printf ', which replaces the present one')"
if [ "$dry" = yes ]; then
  say "nothing was read or written (--dry-run)"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

read_file() {
  case $from in
    https://*) curl --fail --silent --show-error --location --proto '=https' --output "$work/$1" "$from/$1" ||
      fail "cannot download $from/$1" ;;
    *) cp "$from/$1" "$work/$1" || fail "cannot read $from/$1" ;;
  esac
}

read_file SHA256SUMS
if [ "$signature" = yes ]; then
  read_file SHA256SUMS.sig
  openssl pkeyutl -verify -rawin -pubin -inkey "$key" -in "$work/SHA256SUMS" -sigfile "$work/SHA256SUMS.sig" >/dev/null ||
    fail "the signature of SHA256SUMS is not of $key; nothing was installed"
fi
read_file "$name.tar.gz"
grep "  $name\.tar\.gz\$" "$work/SHA256SUMS" >"$work/sum" || fail "SHA256SUMS does not list $name.tar.gz"
(cd "$work" && sha256sum --check --strict --status sum) || fail "the checksum of $name.tar.gz differs; nothing was installed"
tar -xzf "$work/$name.tar.gz" -C "$work" "$name/lockkeeper"
"$work/$name/lockkeeper" --version >/dev/null || fail "the binary does not run on this machine; nothing was installed"
mkdir -p "$to"
# A rename: a process that runs the old binary keeps it.
cp "$work/$name/lockkeeper" "$to/.lockkeeper.new"
chmod 0755 "$to/.lockkeeper.new"
mv -f "$to/.lockkeeper.new" "$to/lockkeeper"
say "installed: $("$to/lockkeeper" --version)"
case :$PATH: in *":$to:"*) ;; *) say "$to is not in PATH: add it to run lockkeeper by its name" ;; esac
