//! How many threads.

use crate::failure::Failure;

/// The number of threads: as many as were asked for, or one per processor.
///
/// # Errors
/// For 0 threads.
pub fn threads(typed: Option<usize>) -> Result<usize, Failure> {
    match typed {
        Some(0) => Err("--threads: at least 1".to_owned().into()),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
