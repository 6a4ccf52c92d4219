#!/usr/bin/env bash
# Their fixed cases: numeric, non-numbers first, reverse, select, unique, ignore case.
# Source: BurntSushi/xsv tests/test_sort.rs, dathere/qsv tests/test_sort.rs
. "${0%/*}/prelude"

c() { merganser sort --format csv "$@" in; }
printf 'N,S\n10,a\nLETTER,b\n2,c\n1,d\n' >in
[ "$(c --header -k N:n -s | tr '\n' ' ')" = "N,S LETTER,b 1,d 2,c 10,a " ] || wrong "numeric $(c --header -k N:n -s)"
printf 'N,S\n8.33,a\n5,b\nLETTER,c\n7.4,d\n3.33,e\n' >in
[ "$(c --header -k N:n -s | tr '\n' ' ')" = "N,S LETTER,c 3.33,e 5,b 7.4,d 8.33,a " ] || wrong natural
printf 'number,letter\n2,c\n1,a\n3,f\n2,b\n1,d\n2,e\n' >in
[ "$(c --header -k number:n -u | tr '\n' ' ')" = "number,letter 1,a 2,c 3,f " ] || wrong "unique $(c --header -k number:n -u)"
printf 'col1,col2\nn,s\nAlpha,baBa\naLPHA,BABA\nN,S\nn,S\n' >in
[ "$(c --header -k 1:f -k 2:f -s | tr '\n' ' ')" = "col1,col2 Alpha,baBa aLPHA,BABA n,s N,S n,S " ] || wrong "ignore case $(c --header -k 1:f -k 2:f -s)"
right "4 fixed cases"
