//! Modules of strangers, judged by a compiler.

use merganser_map::ssdlet::SsdletError;
use merganser_storage::contained::{self, Cause};

/// Runs `judge`, which compiles a module. Modules are strangers', and what judges them is a compiler: where it panics, the module is refused.
///
/// # Errors
/// Those of `judge`, or that it panicked.
pub fn judged<T>(judge: impl FnOnce() -> Result<T, SsdletError>) -> Result<T, SsdletError> {
    contained::run(Cause::Input, judge).unwrap_or_else(|_| {
        Err(SsdletError::Failed("the compiler of this server fails at this module".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_panics_refuses_its_module() {
        let told = judged(|| -> Result<(), _> { panic!("at a module") }).expect_err("refused");
        assert_eq!(told.to_string(), "the compiler of this server fails at this module");
    }
}
