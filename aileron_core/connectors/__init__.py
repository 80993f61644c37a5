"""Providers of ops: the port, manifests, the store of WASM connectors and their host."""
