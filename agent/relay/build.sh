#!/usr/bin/env bash
# Builds the relay for the processors that engines have: `agent/relay/build.sh [FOLDER]`.
# The compilers are Debian's gcc-x86-64-linux-gnu and gcc-aarch64-linux-gnu. What is built is checked in,
# since it is part of the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=${1:-built}
mkdir -p "$folder"
build() {
  local processor=$1
  shift
  "$processor-linux-gnu-gcc" "$@" -Os -Wall -Wextra -Werror -ffreestanding -fno-stack-protector \
    -fno-pic -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -static -nostdlib \
    -no-pie -Wl,-z,noexecstack -Wl,-z,norelro -Wl,--build-id=none -Wl,-z,noseparate-code -s \
    -o "$folder/relay-$processor" relay.c
}
build x86_64 -fcf-protection=none
build aarch64
