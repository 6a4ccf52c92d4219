#!/usr/bin/env bash
# Compressed data from a FIFO, a process substitution and stdin, mixed with plain files.
# Source: nf-core pipelines
. "${0%/*}/prelude"

printf 'c\n' >p
[ "$(merganser sort p <(printf 'b\n' | gzip) <(printf 'a\n' | zstd -qc) | tr '\n' ' ')" = "a b c " ] || wrong procsub
[ "$(printf 'b\na\n' | gzip | merganser sort | tr '\n' ' ')" = "a b " ] && right || wrong stdin
