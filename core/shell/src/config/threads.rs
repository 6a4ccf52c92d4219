//! How many threads.

use super::environment;
use crate::failure::Failure;

/// The number of threads: as many as were asked for, by the option or by `$MERGANSER_THREADS`, or one per processor.
///
/// # Errors
/// For 0 threads, and for a variable that is no number.
pub fn threads(typed: Option<usize>) -> Result<usize, Failure> {
    let (name, threads) = match typed {
        Some(threads) => ("--threads", Some(threads)),
        None => (environment::THREADS, environment::read(environment::THREADS)?),
    };
    match threads {
        Some(0) => Err(format!("{name}: at least 1").into()),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}
