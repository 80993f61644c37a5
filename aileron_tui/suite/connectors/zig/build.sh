#!/bin/sh
# Builds connector.wasm.
set -eu
cd "$(dirname "$0")"
case "$(zig version 2>/dev/null)" in
0.16.*) zig=zig ;;
*)
    zig="python3 -m ziglang"
    case "$($zig version 2>/dev/null)" in
    0.16.*) ;;
    *)
        echo "Zig 0.16 is needed: \`pip install ziglang==0.16.0\`, or from ziglang.org." >&2
        exit 1
        ;;
    esac
    ;;
esac
exec $zig build-exe -target wasm32-freestanding -O ReleaseSmall -fstrip -fno-entry -rdynamic --stack 262144 \
    --name connector -femit-bin=connector.wasm main.zig
