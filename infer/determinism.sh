#!/usr/bin/env bash
# Compares the golden digests of scores and answers on this processor and on emulated ones, each of which
# makes the kernels take another path.
#
#   infer/determinism.sh [--all]     --all: every question to the real model, and not only a short one,
#                                    and the questions of `ombra miner selftest` to agents
#
# Call it as `./run determinism`, which installs the emulator and gets the model; OMBRA_MODEL names its
# file. Ends with 1 where a digest differs, with 77 where all are the same but something was SKIPPED.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=
case "${1:-}" in
  '') ;;
  --all) all=all ;;
  *)
    sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2
    exit 2
    ;;
esac

readonly TARGET="${CARGO_TARGET_DIR:-target}"
readonly ARM=aarch64-unknown-linux-gnu
# The same version of Debian's compiler for both processors, unpacked and not installed.
readonly DEBIAN_RUST="${TARGET%/*}/rustc-debian"

has() { command -v "$1" >/dev/null 2>&1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The words that follow the program's name.
arguments=()
failed=0
skipped=()

skip() {
  skipped+=("$*")
  printf '%-10s SKIPPED\n' "${1%%:*}"
}

# Runs the program that COMMAND names on a processor that should take the path EXPECTED, and prints a
# row of the table.
row() {
  local build=$1 processor=$2 expected=$3 code=0 path digest verdict=ok began
  shift 3
  began=$(date +%s)
  "$@" ${arguments[@]+"${arguments[@]}"} >"$work/out" 2>"$work/err" || code=$?
  path=$(sed -n 's/^instructions //p' "$work/out")
  # One digest of all digests: it has to be the same in every row.
  digest=$(sed '/^instructions /d; s/ [a-zA-Z]*$//' "$work/out" | sha256sum | cut -c 1-16)
  if grep -q ' DIFFERS$' "$work/out"; then
    verdict=DIFFERS
  elif [ "$code" -ne 0 ]; then
    verdict="FAILED ($code)"
  elif [ "$expected" != any ] && [ "$path" != "$expected" ]; then
    verdict="FAILED: not $expected"
  fi
  printf '%-10s %-14s %-13s %-17s %5ss  %s\n' \
    "$build" "$processor" "${path:--}" "$digest" $(($(date +%s) - began)) "$verdict"
  [ "$verdict" = ok ] && return
  failed=1
  grep ' DIFFERS$' "$work/out" || grep -v ': warning: TCG' "$work/err" || true
}

# The path that this processor takes, for the rows that need no emulator.
here() {
  local build=$1 program=$2
  row "$build" "this one" any "$program"
  [ "$path_here" ] || path_here=$(sed -n 's/^instructions //p' "$work/out")
}

# ---- aarch64 ----------------------------------------------------------------------------------

# apt for two kinds of processors, with lists of its own: that of this machine stays as it is.
apt_both() {
  local tool=$1
  shift
  "$tool" -q -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 \
    -o Dir::State="$DEBIAN_RUST/apt" -o Dir::State::status=/var/lib/dpkg/status \
    -o Dir::Cache="$DEBIAN_RUST/apt" -o APT::Sandbox::User=root "$@"
}

# The name of a package on which another depends.
depends() { apt_both apt-cache depends "$1" | sed -n "s/^ *Depends: \($2\)\$/\1/p" | head -n 1; }

# Debian's compiler for the web browsers, with the standard library of both processors. `rustc` in
# DEBIAN_RUST runs it.
unpack_debian_rust() {
  local std llvm
  mkdir -p "$DEBIAN_RUST"/apt/{lists,archives}/partial
  apt_both apt-get update || return
  std=$(depends libstd-rust-web-dev 'libstd-rust-web-[0-9.]*') && [ -n "$std" ] || return
  llvm=$(depends "$std" 'libllvm[0-9.]*') && [ -n "$llvm" ] || return
  (
    cd "$DEBIAN_RUST"
    apt_both apt-get download rustc-web:amd64 "$std":amd64 "$llvm":amd64 \
      libstd-rust-web-dev:amd64 libstd-rust-web-dev:arm64 &&
      for package in *.deb; do dpkg-deb -x "$package" . || exit; done &&
      rm -r apt ./*.deb
  ) || return
  cat >"$DEBIAN_RUST/rustc" <<TXT
#!/bin/sh
LD_LIBRARY_PATH=$DEBIAN_RUST/usr/lib/x86_64-linux-gnu exec $DEBIAN_RUST/usr/bin/rustc \\
  --sysroot $DEBIAN_RUST/usr "\$@"
TXT
  chmod +x "$DEBIAN_RUST/rustc"
}

compiles_for_arm() {
  echo 'fn main() {}' >"$work/empty.rs"
  "$1" --target "$ARM" -Clinker=aarch64-linux-gnu-gcc "$work/empty.rs" -o "$work/empty" 2>"$work/err"
}

# Finds a compiler for aarch64; says in `reason` why there is none.
arm_compiler() {
  reason=
  has qemu-aarch64 || reason="qemu-aarch64 is missing"
  has aarch64-linux-gnu-gcc || reason="aarch64-linux-gnu-gcc is missing"
  [ -z "$reason" ] || return
  # That of rustup, where the target is installed.
  compiler=rustc
  compiles_for_arm rustc && return
  compiler=$DEBIAN_RUST/rustc
  if [ ! -x "$compiler" ] && has apt-get && has dpkg-deb; then
    unpack_debian_rust >"$work/unpacked" 2>&1 || tail -n 3 "$work/unpacked"
  fi
  if [ ! -x "$compiler" ] || ! compiles_for_arm "$compiler"; then
    reason="no standard library of Rust for aarch64: rustup target add $ARM"
    return 1
  fi
}

# Asks agents what `ombra miner selftest` asks, whose answers and receipts are known.
agents() {
  local build=$1 processor=$2 code=0 verdict=ok began
  shift 2
  began=$(date +%s)
  "$@" ${arguments[@]+"${arguments[0]}"} >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq 0 ] || verdict="FAILED ($code)"
  printf '%-10s %-14s %-13s %-17s %5ss  %s\n' "$build" "$processor" agents \
    "$(sha256sum <"$work/out" | cut -c 1-16)" $(($(date +%s) - began)) "$verdict"
  [ "$verdict" = ok ] && return
  failed=1
  cat "$work/out" "$work/err"
}

arm() {
  local reason compiler
  arm_compiler || true
  if [ -n "$reason" ]; then
    skip "aarch64: $reason"
    return
  fi
  # With the parts of libm for single processors, which another crate of the workspace switches on.
  RUSTC=$compiler CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    cargo build --quiet --release --locked --package infer --example digests \
    --features libm/arch --target "$ARM" --target-dir "$TARGET/determinism"
  local program=$TARGET/determinism/$ARM/release/examples/digests processor
  for processor in cortex-a53 max; do
    row aarch64 "$processor" neon qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$processor" "$program"
  done
  [ "$all" ] || return 0
  RUSTC=$compiler CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    cargo build --quiet --release --locked --package agent --example selftest \
    --target "$ARM" --target-dir "$TARGET/determinism"
  agents aarch64 max qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max \
    "$TARGET/determinism/$ARM/release/examples/selftest"
}

# ---- x86-64 -----------------------------------------------------------------------------------

# Processors, and the path that each should take: `plain` is compiled for every x86-64, `shipped` with
# the flags of .cargo/config.toml, as the program is.
readonly PROCESSORS=(
  "plain qemu64,-sse3 sse2"
  "plain Conroe sse2"
  "shipped Nehalem sse4.2"
  "shipped SandyBridge sse4.2"
  "shipped Haswell,-fma sse4.2"
  "shipped Haswell avx2"
  "shipped EPYC-Rome avx2"
  "plain max avx2"
)

intel() {
  local plain=$TARGET/determinism/plain/release/examples/digests
  RUSTFLAGS="-Ctarget-cpu=x86-64" cargo build --quiet --release --locked --package infer \
    --example digests --target-dir "$TARGET/determinism/plain"
  here plain "$plain"
  [ "$path_here" = avx512 ] || skip "avx512: neither this processor nor the emulator has it"
  if ! has qemu-x86_64; then
    skip "x86-64: qemu-x86_64 is missing"
    return
  fi
  local build processor expected program
  for processor in "${PROCESSORS[@]}"; do
    read -r build processor expected <<<"$processor"
    program=$shipped
    [ "$build" = shipped ] || program=$plain
    row "$build" "$processor" "$expected" qemu-x86_64 -cpu "$processor" "$program"
  done
  [ "$all" ] || return 0
  cargo build --quiet --release --locked --workspace --example selftest
  program=$TARGET/release/examples/selftest
  agents shipped "this one" "$program"
  for processor in Nehalem Haswell; do
    agents shipped "$processor" qemu-x86_64 -cpu "$processor" "$program"
  done
}

# The features of all crates, so that it is the arithmetic of the program that is compared.
cargo build --quiet --release --locked --workspace --example digests
readonly shipped="$TARGET/release/examples/digests"
printf '\n%-10s %-14s %-13s %-17s %6s\n' build processor instructions digests time
if [ -f "${OMBRA_MODEL:-}" ]; then
  arguments=("$OMBRA_MODEL" ${all:+"$all"})
else
  skip "real: OMBRA_MODEL names no file, so only the small model is compared"
fi
path_here=
here shipped "$shipped"
case "$(uname -m)" in
  x86_64)
    intel
    arm
    ;;
  *) skip "x86-64: this machine has another processor" ;;
esac

for reason in ${skipped[@]+"${skipped[@]}"}; do printf 'SKIPPED %s\n' "$reason"; done
if [ "$failed" -ne 0 ]; then
  echo "Not every row is ok: it says above which, and why."
  exit 1
fi
echo "All digests are the golden ones."
[ "${#skipped[@]}" -eq 0 ] || exit 77
