//! What a guest may use.

use std::time::Duration;

/// What a guest may use. Beyond it, the guest ends with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmLimits {
    /// The most memory that a guest may declare for one worker, in bytes: linear memory, its copy of the
    /// chunk included. A guest gets what it declares, and not more.
    pub memory_bytes: u64,
    /// The longest module, in bytes. It bounds the time and memory of compiling.
    pub module_bytes: usize,
    /// Fuel for each byte of a chunk, in addition to [`WasmLimits::FUEL_BASE`]. One instruction takes about
    /// one unit; guests that were measured take 2 to 130 per byte.
    pub fuel_per_byte: u64,
    /// The longest that one call of the guest may take. Without it, no clock is looked at, and a result
    /// depends on nothing but the input.
    pub call_time: Option<Duration>,
}

impl WasmLimits {
    /// Fuel for any call of a guest, and for its start: about a tenth of a second.
    pub const FUEL_BASE: u64 = 200_000_000;

    /// `mgs_close` gets the fuel of a chunk of this many bytes: enough to hand out what a guest can have
    /// folded into its memory, and no more for a guest that saw much input.
    const CLOSE_BYTES: u64 = 1 << 20;

    /// The depth of a guest's own calls, in bytes of stack. Threads have 2 MiB.
    pub(crate) const STACK_BYTES: usize = 512 << 10;
    /// The most elements of a guest's tables.
    pub(crate) const TABLE_ELEMENTS: usize = 10_000;
    /// The longest function, in bytes. The time and memory of compiling grow with it.
    pub(crate) const FUNCTION_BYTES: usize = 128 << 10;
    /// The most functions: to compile an empty one takes 0.2 ms.
    pub(crate) const FUNCTIONS: u64 = 10_000;
    /// The most local variables of all functions together.
    pub(crate) const LOCALS: u64 = 500_000;
    /// The most types, imports, tables, memories, globals, exports and segments together.
    pub(crate) const ITEMS: u64 = 10_000;
    /// Memory for compiling where the caller lends none: 512 MiB.
    pub(crate) const COMPILE_BYTES: u64 = 512 << 20;
    /// A compilation that takes up to this many bytes takes nothing from a lender. There is one at a time.
    pub(crate) const COMPILE_FREE_BYTES: u64 = 8 << 20;
    /// Memory of a worker in addition to the guest's own: its table, the store, the instance.
    pub(crate) const WORKER_BYTES: u64 = 192 << 10;

    /// Fuel of a call for a chunk of `bytes` bytes.
    pub(crate) fn chunk_fuel(&self, bytes: u64) -> u64 {
        let fuel = Self::FUEL_BASE.saturating_add(self.fuel_per_byte.saturating_mul(bytes));
        // The engine counts in signed numbers.
        fuel.min(i64::MAX as u64)
    }

    /// Fuel of the last call.
    pub(crate) fn close_fuel(&self) -> u64 {
        self.chunk_fuel(Self::CLOSE_BYTES)
    }
}

impl Default for WasmLimits {
    /// 256 MiB of memory, modules of 4 MiB, 10,000 units of fuel per byte, no limit of time.
    fn default() -> Self {
        WasmLimits {
            memory_bytes: 256 << 20,
            module_bytes: 4 << 20,
            fuel_per_byte: 10_000,
            call_time: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_grows_with_the_chunk_and_never_overflows() {
        let limits = WasmLimits { fuel_per_byte: 7, ..WasmLimits::default() };
        assert_eq!(limits.chunk_fuel(0), WasmLimits::FUEL_BASE);
        assert_eq!(limits.chunk_fuel(10), WasmLimits::FUEL_BASE + 70);
        assert_eq!(limits.close_fuel(), limits.chunk_fuel(1 << 20));
        let limits = WasmLimits { fuel_per_byte: u64::MAX, ..WasmLimits::default() };
        assert_eq!(limits.chunk_fuel(u64::MAX), i64::MAX as u64);
    }
}
