#!/usr/bin/env bash
# 0 is write and 1 is read, sizes in sectors.
# Source: MQSim traces/tpcc-small.trace (columns time device lba size type)
. "${0%/*}/prelude"

printf '0 0 8 8 0\n1000000 0 16 8 1\n2000000 0 24 16 1\n' >t
merganser simulate run --device msr --filled --trace t --format mqsim >o 2>er || wrong "$(cat er)"
grep -qE '^read +2 ' o && grep -qE '^write +1 ' o && right || wrong "$(grep -E '^(read|write)' o)"
