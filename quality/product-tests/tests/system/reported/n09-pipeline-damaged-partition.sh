#!/usr/bin/env bash
# A pipeline that continues compares the partitions that it finds.
. "${0%/*}/prelude"

seq 1 20000 >in
merganser pipeline in --partitions 4 --stage 's:sleep 1; cat' --pool a:1 -o out --quiet &
P=$!
for i in $(seq 100); do
    [ -f .out.unfinished/pipeline/000003.part ] && break
    sleep .02
done
sleep .2
kill -9 $P
wait $P 2>/dev/null
printf 'X' | dd of=.out.unfinished/pipeline/000003.part bs=1 seek=1000 conv=notrunc 2>/dev/null
merganser pipeline in --partitions 4 --stage 's:sleep 1; cat' --pool a:1 -o out --quiet 2>err
rc=$?
cmp -s in out
c=$?
if [ $rc = 0 ] && [ $c != 0 ]; then
    wrong "exit 0 and a wrong output after one byte of a waiting partition changed"
fi
right "exit $rc, $(head -c 100 err)"
