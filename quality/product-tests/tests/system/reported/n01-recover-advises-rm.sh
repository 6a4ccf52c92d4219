#!/usr/bin/env bash
# `recover` never advises to remove a folder whose journal is lost, or one that is not ours.
. "${0%/*}/prelude"

seq 1 3000000 | shuf >big
cp big copy
for t in 0.2 0.3 0.4 0.6 0.8 1.2 2; do
    timeout -s KILL $t merganser sort --consume big -o out --memory 8M --quiet 2>/dev/null
    [ -f .big.merganser-consumed ] && break
done
[ -f .big.merganser-consumed ] || wrong 'no sort was killed behind its claim'
rm -f .out.unfinished/sort-journal
mkdir .thesis.unfinished
echo 'the only copy' >.thesis.unfinished/chapter1.txt
merganser recover . >said || wrong "recover ended with $?"
n=$(grep -c 'next:  rm -r ./\.\(out\|thesis\)\.unfinished' said)
grep -q merganser-consumed said || wrong "recover does not name the claimed input: $(cat said)"
[ "$n" = 0 ] && right "recover does not advise to remove what it does not know"
wrong "recover says 'its inputs are whole; next: rm -r' for $n of 2 folders whose content is the only copy"
