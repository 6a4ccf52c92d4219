#!/usr/bin/env bash
# ISO dates, and days/months/years by character keys.
# Source: GNU sort FAQ, csvkit
. "${0%/*}/prelude"

printf '31/01/2020,x\n01/02/2019,y\n15/12/2019,z\n' >in
sort -t, -k1.7,1.10 -k1.4,1.5 -k1.1,1.2 in >e
merganser sort -t, -k1.7,1.10 -k1.4,1.5 -k1.1,1.2 in >g
same e g
