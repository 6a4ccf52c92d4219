#!/bin/sh
# Compiles the crate to @NAME@.wasm. The target is installed by: rustup target add wasm32-unknown-unknown
set -eu
cd "$(dirname "$0")"
cargo build --release --target wasm32-unknown-unknown --target-dir target
cp "target/wasm32-unknown-unknown/release/$(echo @NAME@ | tr - _).wasm" @NAME@.wasm
