#!/usr/bin/env bash
# ASU,LBA,size,opcode,time with fractions and mixed case; ASU offsets.
# Source: UMass SPC traces (Financial1.spc)
. "${0%/*}/prelude"

printf '0,303567,3584,w,0.000000\n0,55590,3072,W,0.026214\n0,303574,3584,r,0.026682\n' >t.spc
merganser simulate run --device msr --trace t.spc --wrap >o 2>er || wrong "$(cat er)"
grep -qE '^read +1 ' o && grep -qE '^write +2 ' o && right || wrong "$(head -20 o)"
