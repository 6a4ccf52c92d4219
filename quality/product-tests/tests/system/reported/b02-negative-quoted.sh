#!/usr/bin/env bash
# Negative quoted numbers.
# Source: BurntSushi/xsv#357
. "${0%/*}/prelude"

printf 'foo,"-113.65",bar\nfoo,"-300.28",bar\nfoo,"-285.49",bar\nfoo,"12",b\n' >in
printf 'foo,"-300.28",bar\nfoo,"-285.49",bar\nfoo,"-113.65",bar\nfoo,"12",b\n' >e
merganser sort --format csv -k 2:n in >g
same e g
