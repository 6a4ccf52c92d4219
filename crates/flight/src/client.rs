//! Our own client.
