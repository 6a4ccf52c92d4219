#!/usr/bin/env bash
# Text behind the last member: gzip warns (exit 2) and gives the data.
# Source: flate2#396, libflate#75
. "${0%/*}/prelude"

printf 'b\na\n' | gzip >in.gz
printf 'garbage here' >>in.gz
merganser sort in.gz >g 2>er
rc=$?
[ $rc = 2 ] && [ ! -s g ] && right "refused: $(cat er)"
[ $rc = 0 ] && [ -s er ] && right "warned"
wrong "exit $rc: $(cat er) $(cat g)"
