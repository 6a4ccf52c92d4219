#!/usr/bin/env bash
# Files of /proc have size 0 and content.
# Source: NetBSD/src#24, util-linux#1569 (the same class in cp and more)
. "${0%/*}/prelude"

sort /proc/filesystems >e
merganser sort /proc/filesystems >g 2>er
rc=$?
same e g "rc $rc, /proc/filesystems ($(cat er))"
