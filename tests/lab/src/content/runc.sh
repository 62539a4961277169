#!/bin/sh
# Debian's runc is the last SIZE bytes of this file. A host of the lab lacks some capabilities, and runc starts no container that asks for
# one of them, as cilium's do: they are taken out of what the container asks for.
set -u
program=/run/lab-runc
if [ ! -x "$program" ]; then
    tail -c SIZE "$0" >"$program.$$" && chmod 755 "$program.$$" && mv "$program.$$" "$program" || exit
fi
mask=0x$(sed -n 's/^CapBnd:[[:blank:]]*//p' /proc/self/status)
missing=
for one in SYS_MODULE:16 SYS_RESOURCE:24 SYS_TIME:25; do
    [ $((mask >> ${one#*:} & 1)) = 1 ] || missing="$missing${missing:+|}${one%:*}"
done
before=
for word in "$@"; do
    case $before in
    --bundle | -b) file=$word/config.json ;;
    --process | -p) file=$word ;;
    *) file= ;;
    esac
    if [ -n "$missing" ] && [ -f "$file" ]; then
        sed -i -E -e "s/\"CAP_($missing)\",//g" -e "s/,\"CAP_($missing)\"//g" "$file" || exit
    fi
    before=$word
done
exec "$program" "$@"
