//! SSDlets in WebAssembly: guests that run near the data, within limits.
