#!/usr/bin/env bash
# FIU's lines with hashes.
# Source: FIU traces (ts pid process lba size op major minor md5)
. "${0%/*}/prelude"

printf '0 10 httpd 8 8 W 6 0 531e779b0f0e1b3e6c1f2a9d8c7b6a5f\n1000 10 httpd 16 8 R 6 0 531e779b0f0e1b3e6c1f2a9d8c7b6a5f\n' >t
merganser simulate run --device msr --trace t --format fiu >o 2>er || wrong "$(cat er)"
grep -qE '^read +1 ' o && grep -qE '^write +1 ' o && right || wrong "$(cat er)"
