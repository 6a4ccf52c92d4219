#!/usr/bin/env bash
# Alibaba (device,opcode,offset,length,us) and Tencent (s,sector,sectors,type,volume): refused with a clear word, never taken for another format.
# Source: users of public cloud traces
. "${0%/*}/prelude"

printf '419,W,8792731648,16384,1577808144360767\n' >t
merganser simulate run --device msr --trace t --wrap >o 2>er
[ $? = 2 ] || wrong alibaba
printf '1538323200,12910952128,16,0,1063\n' >t
merganser simulate run --device msr --trace t --wrap >o 2>er
[ $? = 2 ] && right "$(head -c 120 er)" || wrong tencent
