#!/usr/bin/env bash
# Column names that look like options or numbers.
# Source: columns such as time:utc, xml:lang, 2019, -1, with blanks, quoted
. "${0%/*}/prelude"

printf '"time:n","city, name",2019,k:r,"a ""b"""\n10,B,x,1,p\n9,A,y,2,o\n' >in
t=
for k in 'time:n' 'city, name' 'a "b"'; do merganser sort --format csv --header -k "$k" in >g 2>er || t="$t [$k: $(cat er)]"; done
[ -z "$t" ] && right || wrong "$t"
