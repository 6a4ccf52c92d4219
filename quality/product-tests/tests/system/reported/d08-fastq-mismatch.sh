#!/usr/bin/env bash
# Quality shorter or longer than the sequence: an error that names the record.
# Source: sortmerna#407
. "${0%/*}/prelude"

printf '@r1\nACGT\n+\nII\n@r2\nA\n+\nI\n' >in
merganser sort --format fastq in >g 2>er
[ $? = 2 ] || wrong "short accepted: $(tr '\n' '|' <g)"
printf '@r1\nAC\n+\nIIII\n@r2\nA\n+\nI\n' >in
merganser sort --format fastq in >g 2>er2
[ $? = 2 ] && right "$(cat er2)" || wrong "long accepted"
