#!/usr/bin/env bash
# `map --on` keeps within its memory while a node answers without end.
. "${0%/*}/prelude"

PY=$(python_with_pyarrow) || skip "no pyarrow"
cat >n.py <<'P'
import pyarrow.flight as fl
class E(fl.FlightServerBase):
    def do_action(self,c,a):
        def g():
            while True: yield fl.Result(b'x'*3000000)
        return g()
s=E('grpc+tcp://127.0.0.1:0'); print(s.port,flush=True); s.serve()
P
"$PY" n.py >port 2>/dev/null &
S=$!
while [ ! -s port ]; do sleep .1; done
(
    ulimit -v 4000000
    exec merganser map wordcount a --on 127.0.0.1:$(cat port) --memory 32M -o out
) 2>said &
C=$!
hwm=0
for i in $(seq 100); do
    m=$(awk '/VmHWM/{print int($2/1024)}' /proc/$C/status 2>/dev/null) || break
    [ -n "$m" ] || break
    hwm=$m
    sleep .05
done
# A client that ends by itself says why.
if [ ! -d /proc/$C ] || grep -q '^State:.Z' /proc/$C/status; then
    wait $C
    ended=$?
else
    ended=running
fi
kill -9 $C $S 2>/dev/null
wait 2>/dev/null
[ "$hwm" -le 96 ] || wrong "map --on with --memory 32M took $hwm MiB in 5 s from a node that answers without end"
[ "$ended" = running ] || { [ "$ended" = 2 ] && [ "$(wc -l <said)" = 1 ]; } || wrong "it ended with $ended: $(cat said)"
right "at most $hwm MiB; $ended: $(cat said)"
