#!/usr/bin/env bash
# Builds the example agents into built/. Needs Rust with the target wasm32v1-none:
#   rustup target add wasm32v1-none
# or a compiler whose sources are installed, with BUILD_STD=1 (CARGO and RUSTC name other programs).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${CARGO_TARGET_DIR:-target}
std=()
if [ "${BUILD_STD:-}" = 1 ]; then
  export RUSTC_BOOTSTRAP=1
  std=("-Zbuild-std=core,alloc" -Zbuild-std-features=compiler-builtins-mem)
fi
"${CARGO:-cargo}" build --release --locked "${std[@]}" -p keywords -p jury -p tally
mkdir -p built
for agent in keywords jury tally; do
  cp "$out/wasm32v1-none/release/$agent.wasm" "built/$agent.wasm"
done
