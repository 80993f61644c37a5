"""The WASM host: the only importer of wasmtime."""
