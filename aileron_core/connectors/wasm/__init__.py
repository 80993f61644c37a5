"""Running WASM connectors in wasmtime, which is imported in this package only."""
