#!/usr/bin/env bash
# Empties.
# Source: gzip of nothing; file of 0 bytes named .gz
. "${0%/*}/prelude"

printf '' | gzip >e.gz
: >z.gz
merganser sort e.gz z.gz >g 2>er || wrong "$(cat er)"
[ -s g ] && wrong bytes
merganser sort --format csv --header e.gz >g 2>er || wrong "csv $(cat er)"
right
