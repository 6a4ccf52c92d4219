#!/bin/sh
# Compiles guest.c to @NAME@.wasm. CLANG names another clang; lld is needed, too.
set -eu
cd "$(dirname "$0")"
"${CLANG:-clang}" --target=wasm32-unknown-unknown -nostdlib -Wall -Wextra -O3 -msimd128 -mbulk-memory \
    -Wl,--no-entry -Wl,--strip-all guest.c -o @NAME@.wasm
