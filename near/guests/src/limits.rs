//! The meaning of the limits of guests.

use std::time::Duration;

use merganser_serve::session::GuestLimits;
use merganser_shell::failure::Failure;

use crate::args::GuestArgs;

/// The limits that were typed.
///
/// # Errors
/// A limit that leaves nothing; a text that is no time.
pub fn limits(typed: &GuestArgs) -> Result<GuestLimits, Failure> {
    if typed.fuel_per_byte == Some(0) {
        return Err("--fuel-per-byte: at least 1".to_owned().into());
    }
    // A page of WebAssembly: no guest has less.
    if typed.guest_memory.is_some_and(|memory| memory.0 < 64 << 10) {
        return Err("--guest-memory: at least 64K".to_owned().into());
    }
    Ok(GuestLimits {
        fuel_per_byte: typed.fuel_per_byte,
        call_time: typed.time_limit.map(call_time).transpose()?,
        memory_bytes: typed.guest_memory.map(|memory| memory.0),
    })
}

/// The first of them that was typed, where there is no guest.
#[must_use]
pub fn flag(typed: &GuestArgs) -> Option<&'static str> {
    let fuel = typed.fuel_per_byte.map(|_| "--fuel-per-byte");
    let time = typed.time_limit.map(|_| "--time-limit");
    fuel.or(time).or(typed.guest_memory.map(|_| "--guest-memory"))
}

/// The meaning of `--time-limit`.
fn call_time(seconds: f64) -> Result<Duration, Failure> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        format!("--time-limit: '{seconds}' is no time; give seconds, such as 0.5").into()
    })
}

/// The limits of a guest, with the defaults of those that were not asked for.
#[must_use]
pub fn of_engine(asked: GuestLimits) -> merganser_wasm::WasmLimits {
    let default = merganser_wasm::WasmLimits::default();
    merganser_wasm::WasmLimits {
        memory_bytes: asked.memory_bytes.unwrap_or(default.memory_bytes),
        fuel_per_byte: asked.fuel_per_byte.unwrap_or(default.fuel_per_byte),
        call_time: asked.call_time,
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_shell::args::TypedSize;

    #[test]
    fn limits_leave_something() {
        let none = GuestArgs::default();
        assert_eq!((limits(&none).ok(), flag(&none)), (Some(GuestLimits::default()), None));
        let some = GuestArgs {
            fuel_per_byte: Some(7),
            time_limit: Some(0.5),
            guest_memory: Some(TypedSize(1 << 20)),
        };
        let meant = GuestLimits {
            fuel_per_byte: Some(7),
            call_time: Some(Duration::from_millis(500)),
            memory_bytes: Some(1 << 20),
        };
        assert_eq!((limits(&some).ok(), flag(&some)), (Some(meant), Some("--fuel-per-byte")));
        let time = |seconds| GuestArgs { time_limit: Some(seconds), ..GuestArgs::default() };
        for seconds in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e300] {
            assert!(limits(&time(seconds)).is_err(), "{seconds}");
        }
        assert_eq!(flag(&time(0.1)), Some("--time-limit"));
        let fuel = GuestArgs { fuel_per_byte: Some(0), ..GuestArgs::default() };
        assert!(limits(&fuel).is_err());
        let memory = GuestArgs { guest_memory: Some(TypedSize(65_535)), ..GuestArgs::default() };
        assert!(limits(&memory).is_err());
        assert_eq!(flag(&memory), Some("--guest-memory"));
    }
}
