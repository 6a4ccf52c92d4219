//! Tests of the whole command, in `tests`: all its programs together, as users have them. They run what was built last
//! next to them, so `cargo test` of the whole workspace, or `cargo build --bins` before, makes it new.
