#!/usr/bin/env bash
# Quoted decimals with a comma and leading zeros stay as they are.
# Source: wireservice/csvkit#1159
. "${0%/*}/prelude"

printf 'LineID,c1,c2\n00002,some other text,"126,20"\n00001,some text,"126,20"\n' >in
printf 'LineID,c1,c2\n00001,some text,"126,20"\n00002,some other text,"126,20"\n' >e
merganser sort --format csv --header -k LineID in >g
same e g
