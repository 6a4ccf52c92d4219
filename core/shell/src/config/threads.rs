//! How many threads.

use crate::failure::Failure;
use crate::setting::THREADS;

/// The number of threads: as many as were asked for, by the option or by `$MERGANSER_THREADS`, or one per processor.
///
/// # Errors
/// For 0 threads, and for a variable that is no number.
pub fn threads(typed: Option<usize>) -> Result<usize, Failure> {
    match THREADS.or_variable(typed)? {
        Some(0) => Err(format!("{}: at least 1", THREADS.name()).into()),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
