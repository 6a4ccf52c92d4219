#!/usr/bin/env bash
# The name of a folder or output is never run as a command.
. "${0%/*}/prelude"

mkdir "x\$(touch PWNED)"
cd "x\$(touch PWNED)" || exit 2
seq 1 100 >in
merganser pipeline in --partitions 2 --stage 's:cat "$(echo "{in}")"' -o o1 --quiet 2>/dev/null
a=$([ -e PWNED ] && echo yes || echo no)
rm -f PWNED
merganser pipeline in --partitions 2 --stage 's:cat {in}; cat > /dev/null <<E
{in}
E' -o o2 --quiet 2>/dev/null
b=$([ -e PWNED ] && echo yes || echo no)
[ "$a$b" = nono ] && right "no command of the folder's name was run"
wrong "the folder's name 'x\$(touch PWNED)' was run as a command: nested quotes $a, here-document $b"
