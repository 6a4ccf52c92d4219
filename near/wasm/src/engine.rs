//! The engines of a process: how guests are compiled, and where their memory is.
//!
//! ```text
//!                     plenty of address space           RLIMIT_AS is small
//!   without a clock   4 GiB reserved for a guest,       memory as large as it is, moved when
//!                     faults instead of checks          it grows, each access checked (0.8 of the speed)
//!   with a clock      the same, and every loop looks at a counter that a thread advances
//! ```
//!
//! A reservation is address space and no memory: a control group counts the pages that were touched.
//! `RLIMIT_AS` counts it all, so a process under that limit gets the second column.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use merganser_map::ssdlet::SsdletError;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use wasmtime::{Config, Engine, OptLevel};

use crate::limits::WasmLimits;

/// Address space below which no guest gets a reservation: room for some hundred of them.
const ADDRESS_SPACE_BYTES: u64 = 1 << 40;

/// The time between two steps of the clock that guests are measured with.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// The engine for guests that are (`timed`) or are not watched by a clock.
///
/// # Errors
/// When this processor or system can't run compiled guests.
pub(crate) fn engine(timed: bool) -> Result<Engine, SsdletError> {
    static ENGINES: [OnceLock<Result<Engine, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = ENGINES[usize::from(timed)].get_or_init(|| {
        let reserve =
            getrlimit(Resource::As).current.is_none_or(|most| most >= ADDRESS_SPACE_BYTES);
        Engine::new(&config(timed, reserve)).map_err(|error| error.to_string())
    });
    made.clone().map_err(|error| {
        SsdletError::Failed(format!("WebAssembly can't be run on this machine: {error}"))
    })
}

/// The settings of an engine. Results must be the same on every machine: NaNs have one form, and
/// instructions whose result depends on the processor are refused.
fn config(timed: bool, reserve: bool) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(timed)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .max_wasm_stack(WasmLimits::STACK_BYTES)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false)
        .generate_address_map(false)
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    if !reserve {
        config
            .memory_reservation(0)
            .memory_guard_size(0)
            .memory_reservation_for_growth(1 << 20)
            .guard_before_linear_memory(false);
    }
    config
}

/// Advances the clock of timed guests for as long as it lives.
pub(crate) struct Ticker(Engine);

impl Ticker {
    /// The ticker of this process; its thread ends when the last user drops it.
    ///
    /// # Errors
    /// When there is no engine, or no thread.
    pub(crate) fn shared() -> Result<Arc<Self>, SsdletError> {
        static SHARED: Mutex<Weak<Ticker>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        if let Some(ticker) = shared.upgrade() {
            return Ok(ticker);
        }
        let ticker = Arc::new(Ticker(engine(true)?));
        let watched = Arc::downgrade(&ticker);
        let thread =
            std::thread::Builder::new().name("guests' clock".to_owned()).spawn(move || {
                while let Some(ticker) = watched.upgrade() {
                    ticker.0.increment_epoch();
                    drop(ticker);
                    std::thread::sleep(TICK);
                }
            });
        thread.map_err(|error| SsdletError::Failed(format!("the guests' clock: {error}")))?;
        *shared = Arc::downgrade(&ticker);
        Ok(ticker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_engine_can_be_made() {
        for timed in [false, true] {
            for reserve in [false, true] {
                assert!(Engine::new(&config(timed, reserve)).is_ok(), "{timed} {reserve}");
            }
        }
    }

    #[test]
    fn the_clock_runs_while_it_is_held() {
        let first = Ticker::shared().expect("a clock");
        let second = Ticker::shared().expect("a clock");
        assert!(Arc::ptr_eq(&first, &second));
        let watched = Arc::downgrade(&first);
        drop((first, second));
        let begun = std::time::Instant::now();
        while watched.strong_count() > 0 {
            assert!(begun.elapsed().as_secs() < 20, "its thread keeps it");
            std::thread::sleep(TICK);
        }
    }
}
