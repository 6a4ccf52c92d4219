#!/usr/bin/env bash
# Blank lines between and behind FASTQ records.
# Source: sortmerna#117
. "${0%/*}/prelude"

printf '@r2\nA\n+\nI\n\n@r1\nC\n+\nI\n\n\n' >in
merganser sort --format fastq -k id in >g 2>er || wrong "$(cat er)"
[ "$(grep -v '^$' g | tr '\n' ' ')" = "@r1 C + I @r2 A + I " ] && right || wrong "$(tr '\n' '|' <g)"
