#!/bin/sh
# Compiles index.ts to @NAME@.wasm and adds the section that says what it is. ASC names another compiler;
# without it, `npm install` must have been called.
set -eu
cd "$(dirname "$0")"
"${ASC:-node_modules/.bin/asc}" index.ts -O3 --runtime stub --use abort= -o @NAME@.wasm
node section.mjs section.json @NAME@.wasm
