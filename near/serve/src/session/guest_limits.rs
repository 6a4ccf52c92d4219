//! The limits of a guest, as a client asks for them and a server allows them.

use std::time::Duration;

/// What a guest may use; `None` stands for the default of the program that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GuestLimits {
    /// The most fuel per byte of input.
    pub fuel_per_byte: Option<u64>,
    /// The longest that one call may take.
    pub call_time: Option<Duration>,
    /// The most memory that it may declare for a worker, in bytes.
    pub memory_bytes: Option<u64>,
}

impl GuestLimits {
    /// The stricter one of each: what a client asks for, within what a server allows.
    #[must_use]
    pub fn within(self, most: GuestLimits) -> GuestLimits {
        fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        GuestLimits {
            fuel_per_byte: least(self.fuel_per_byte, most.fuel_per_byte),
            call_time: least(self.call_time, most.call_time),
            memory_bytes: least(self.memory_bytes, most.memory_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_limit_holds() {
        let limits = |fuel, seconds, memory| GuestLimits {
            fuel_per_byte: fuel,
            call_time: seconds,
            memory_bytes: memory,
        };
        let second = Some(Duration::from_secs(1));
        let asked = limits(Some(5), None, Some(100));
        let most = limits(Some(10), second, Some(50));
        assert_eq!(asked.within(most), limits(Some(5), second, Some(50)));
        assert_eq!(GuestLimits::default().within(most), most);
        assert_eq!(asked.within(GuestLimits::default()), asked);
    }
}
