#!/usr/bin/env bash
# Last row without line end in a CRLF file: CRLF or LF added, no glue.
# Source: Excel
. "${0%/*}/prelude"

printf 'id,n\r\n2,b\r\n1,a' >in
merganser sort --format csv --header -k id in | od -c >o
printf 'id,n\r\n1,a\r\n2,b\r\n' | od -c >e1
printf 'id,n\r\n1,a\n2,b\r\n' | od -c >e2
cmp -s o e1 && right CRLF
cmp -s o e2 && wrong "LF added: the file now mixes LF and CRLF"
wrong "$(cat o)"
