#!/usr/bin/env bash
# Silent connections without the token do not keep those with it out.
. "${0%/*}/prelude"

mkdir data
echo 'a b' >data/a
echo 0123456789abcdef0123 >token
chmod 600 token
openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -addext basicConstraints=critical,CA:FALSE 2>/dev/null
merganser serve --data data --listen 127.0.0.1:0 --token-file token --tls-cert c.pem --tls-key k.pem 2>err &
P=$!
for i in $(seq 50); do
    port=$(grep -o '127.0.0.1:[0-9]*' err | head -1 | cut -d: -f2)
    [ -n "$port" ] && break
    sleep .1
done
ask() { timeout 8 merganser map wordcount a --on 127.0.0.1:$port --token-file token --ca c.pem >/dev/null 2>&1; }
ask || {
    kill $P
    wrong "not served before the attack"
}
python3 - $port <<'P' &
import socket,sys,time
cs=[];end=time.time()+40
while time.time()<end:
    while len(cs)<400:
        s=socket.socket();s.setblocking(False)
        try:s.connect(('127.0.0.1',int(sys.argv[1])))
        except BlockingIOError:pass
        cs.append(s)
    for s in cs[:]:
        try:
            if not s.recv(1):s.close();cs.remove(s)
        except BlockingIOError:pass
        except OSError:s.close();cs.remove(s)
    time.sleep(.1)
P
A=$!
sleep 2
bad=0
for i in 1 2 3; do ask || bad=$((bad + 1)); done
kill $A $P 2>/dev/null
wait 2>/dev/null
[ $bad = 0 ] && right "clients with the token are served next to 400 silent connections without it"
wrong "next to 400 silent connections without a token, $bad of 3 clients with the token got no answer in 8 s"
