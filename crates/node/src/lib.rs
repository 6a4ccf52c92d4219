//! What runs near the data: programs that answer a host's requests from inside a storage device or on
//! a storage node.
