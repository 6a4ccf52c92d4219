#!/usr/bin/env bash
# A file that grows and one that is truncated meanwhile.
# Source: users sort a log that is being written
. "${0%/*}/prelude"

seq 300000 | sort -R >in
(for i in $(seq 50); do
    echo x$i >>in
    sleep 0.01
done) &
merganser sort in >g 2>er
rc=$?
wait
[ $rc = 0 ] || wrong "rc $rc $(cat er)"
n=$(wc -l <g)
[ $n -ge 300000 ] && right "$n lines" || wrong "$n lines"
