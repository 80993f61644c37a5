"""Connectors, which provide the ops of actions: their protocol, manifests, installed store, and WASM host."""
