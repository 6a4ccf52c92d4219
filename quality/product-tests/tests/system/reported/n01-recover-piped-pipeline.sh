#!/usr/bin/env bash
# The bytes of a pipe that a killed pipeline read are only in its folder: `recover` says so.
. "${0%/*}/prelude"

mkfifo p
(
    seq 1 20000
    sleep 2
) >p &
merganser pipeline - --partitions 20K --stage 's:sleep 0.2; cat' -o out --quiet <p &
P=$!
sleep 1.2
kill -9 $P
wait 2>/dev/null
sleep .2
t=$(merganser recover .) || wrong "recover ended with $?"
s=$(du -sb .out.unfinished | cut -f1)
case "$t" in *"its inputs are whole"*"rm -r"*)
    wrong "recover says that a pipe is whole, and advises rm -r of $s bytes that are nowhere else"
    ;;
esac
case "$t" in *.out.unfinished*) right "$s bytes are kept" ;; esac
wrong "recover does not name the folder: $t"
