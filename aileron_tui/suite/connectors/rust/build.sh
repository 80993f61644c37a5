#!/bin/sh
# Builds connector.wasm.
set -eu
cd "$(dirname "$0")"
if ! command -v cargo >/dev/null; then
    echo "Rust is needed: from rustup.rs or your system's packages." >&2
    exit 1
fi
for target in wasm32-wasip1 wasm32-wasi; do # the second is the name that Rust before 1.78 has for it
    if [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ]; then
        cargo build --release --target "$target" --target-dir target
        exec cp "target/$target/release/connector.wasm" connector.wasm
    fi
done
echo "Rust's target wasm32-wasip1 is needed: \`rustup target add wasm32-wasip1\`, or libstd-rust-dev-wasm32 of Debian's packages." >&2
exit 1
