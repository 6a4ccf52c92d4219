//! The functions that a guest may call, in module `mgs`.
//!
//! Each takes the fuel that its work is worth, so that a guest can't have the host work for nothing.
//! A call that makes no sense is noted as the guest's fault and traps.

use merganser_node::ssdlet::{Chunk, Emitter, SsdletError};
use wasmtime::{Caller, Engine, Linker, Result, Trap};

use crate::answers::{Answers, SPAN_BYTES, VALUE_BYTES};
use crate::guest::State;
use crate::scope;

/// The module of all of them.
pub const MODULE: &str = "mgs";

/// All of them: name, parameters and results as [`crate::module`] writes them.
pub const ALL: &[(&str, (&str, &str))] = &[
    ("emit", ("ii", "")),
    ("emit_spans", ("ii", "")),
    ("emit_values", ("ii", "")),
    ("error", ("ii", "")),
    ("error_at", ("iii", "")),
    ("input", ("", "i")),
    ("offset", ("", "l")),
];

/// Fuel of a key or record that is handed over, in addition to its bytes.
const RECORD_FUEL: u64 = 8;

/// A linker with all of them.
///
/// # Errors
/// None that is known.
pub fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(MODULE, "emit", |caller: Caller<'_, State>, at: u32, bytes: u32| {
        // A frame has 8 bytes at least, so the bytes bound the records, too.
        let fuel = u64::from(bytes) + RECORD_FUEL;
        hand_over(caller, at, u64::from(bytes), fuel, |answers, given, _, out| {
            answers.records(given, out)
        })
    })?;
    linker.func_wrap(MODULE, "emit_spans", |caller: Caller<'_, State>, at: u32, count: u32| {
        let fuel = u64::from(count) * RECORD_FUEL;
        hand_over(
            caller,
            at,
            u64::from(count) * SPAN_BYTES as u64,
            fuel,
            |answers, given, chunk, out| answers.spans(given, chunk.bytes, out),
        )
    })?;
    linker.func_wrap(MODULE, "emit_values", |caller: Caller<'_, State>, at: u32, count: u32| {
        let fuel = u64::from(count) * RECORD_FUEL;
        hand_over(
            caller,
            at,
            u64::from(count) * VALUE_BYTES as u64,
            fuel,
            |answers, given, chunk, out| answers.values(given, chunk.bytes, out),
        )
    })?;
    linker.func_wrap(MODULE, "error", |mut caller: Caller<'_, State>, at: u32, bytes: u32| {
        let said = text(&mut caller, at, bytes)?;
        Err::<(), _>(refuse(&mut caller, said))
    })?;
    linker.func_wrap(
        MODULE,
        "error_at",
        |mut caller: Caller<'_, State>, place: u32, at: u32, bytes: u32| {
            let said = text(&mut caller, at, bytes)?;
            let name = caller.data().name().to_owned();
            let offset = scope::with(|chunk, _| {
                let inside = u64::from(place).min(chunk.bytes.len() as u64);
                chunk.offset.saturating_add(inside)
            });
            let Some(offset) = offset else { return Err::<(), _>(refuse(&mut caller, said)) };
            let detail = format!("{name}: {said}");
            Err(caller.data_mut().end_with(SsdletError::Record { offset, detail }))
        },
    )?;
    linker.func_wrap(MODULE, "input", |mut caller: Caller<'_, State>| {
        place(&mut caller, |chunk| chunk.input)
    })?;
    linker.func_wrap(MODULE, "offset", |mut caller: Caller<'_, State>| {
        place(&mut caller, |chunk| chunk.offset)
    })?;
    Ok(linker)
}

/// Passes `bytes` bytes of the guest's memory to `take`, for `fuel`.
fn hand_over(
    mut caller: Caller<'_, State>,
    at: u32,
    bytes: u64,
    fuel: u64,
    take: impl FnOnce(&Answers, &[u8], Chunk<'_>, &mut Emitter<'_>) -> Result<(), String>,
) -> Result<()> {
    let left = caller.get_fuel()?.checked_sub(fuel).ok_or(Trap::OutOfFuel)?;
    caller.set_fuel(left)?;
    let memory = caller.data_mut().memory()?;
    let (all, state) = memory.data_and_store_mut(&mut caller);
    let given = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| all.get(at as usize..)?.get(..bytes))
        .ok_or_else(|| {
            state.refuse(format!(
                "it handed over {bytes} bytes at address {at}, outside of its memory"
            ))
        })?;
    if state.is_closing() && matches!(state.answers(), Answers::Ordered(_)) {
        return Err(state.refuse("it handed over records in mgs_close, where they have no place in the order of its output".to_owned()));
    }
    let taken = scope::with(|chunk, out| take(state.answers(), given, chunk, out));
    let taken = taken.unwrap_or_else(|| {
        Err("it handed over records outside of mgs_chunk and mgs_close".to_owned())
    });
    taken.map_err(|fault| state.refuse(fault))
}

/// A message of the guest.
fn text(caller: &mut Caller<'_, State>, at: u32, bytes: u32) -> Result<String> {
    let memory = caller.data_mut().memory()?;
    let said = memory.data(&caller).get(at as usize..).and_then(|rest| rest.get(..bytes as usize));
    let said = said.map(crate::plain);
    said.ok_or_else(|| refuse(caller, "it gave a message outside of its memory".to_owned()))
}

/// A fact about the current chunk.
fn place<T>(caller: &mut Caller<'_, State>, fact: impl FnOnce(Chunk<'_>) -> T) -> Result<T> {
    let found = if caller.data().is_closing() { None } else { scope::with(|chunk, _| fact(chunk)) };
    found.ok_or_else(|| {
        refuse(caller, "it asked for the place of a chunk when it had none".to_owned())
    })
}

fn refuse(caller: &mut Caller<'_, State>, detail: String) -> wasmtime::Error {
    caller.data_mut().refuse(detail)
}
