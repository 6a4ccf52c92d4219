//! The functions that a guest may call, in module `mgs`.
//!
//! Each takes the fuel that its work is worth, so that a guest can't have the host work for nothing.
//! A call that makes no sense is noted as the guest's fault and traps.

use merganser_map::ssdlet::{Chunk, Emitter, SsdletError};
use wasmtime::{Caller, Engine, Linker, Result, Trap};

use crate::answers::{AnswerForm, SPAN_BYTES, VALUE_BYTES};
use crate::scope;
use crate::state::GuestState;

/// The module of all of them.
pub(crate) const MODULE: &str = "mgs";

/// All of them: name, parameters and results as [`crate::module`] writes them.
pub(crate) const ALL: &[(&str, (&str, &str))] = &[
    ("emit", ("ii", "")),
    ("emit_spans", ("ii", "")),
    ("emit_values", ("ii", "")),
    ("error", ("ii", "")),
    ("error_at", ("iii", "")),
    ("input", ("", "i")),
    ("offset", ("", "l")),
];

/// Those that tell the place of a chunk.
pub(crate) const PLACES: &[&str] = &["input", "offset"];

/// Fuel of a key or record that is handed over, in addition to its bytes.
const RECORD_FUEL: u64 = 8;

/// Hands on what a guest gave: the bytes, and the current chunk.
type Take = fn(&AnswerForm, &[u8], &[u8], &mut Emitter<'_>) -> Result<(), String>;

/// The functions that take entries of some bytes each, which begin with a span.
const ENTRIES: [(&str, usize, Take); 2] = [
    ("emit_spans", SPAN_BYTES, AnswerForm::spans),
    ("emit_values", VALUE_BYTES, AnswerForm::values),
];

/// A linker with all of them.
///
/// # Errors
/// None that is known.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(MODULE, "emit", |caller: Caller<'_, GuestState>, at: u32, bytes: u32| {
        // A frame has 8 bytes at least, so the bytes bound the records, too.
        let given = Given { at, bytes: u64::from(bytes), fuel: u64::from(bytes) + RECORD_FUEL };
        hand_over(caller, given, None, |answers, given, _, out| answers.records(given, out))
    })?;
    for (name, entry_bytes, take) in ENTRIES {
        linker.func_wrap(
            MODULE,
            name,
            move |caller: Caller<'_, GuestState>, at: u32, count: u32| {
                let count = u64::from(count);
                let bytes = count * entry_bytes as u64;
                let given = Given { at, bytes, fuel: count * RECORD_FUEL };
                hand_over(caller, given, Some(entry_bytes), take)
            },
        )?;
    }
    linker.func_wrap(
        MODULE,
        "error",
        |mut caller: Caller<'_, GuestState>, at: u32, bytes: u32| {
            let said = text(&mut caller, at, bytes)?;
            Err::<(), _>(refuse(&mut caller, said))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "error_at",
        |mut caller: Caller<'_, GuestState>, place: u32, at: u32, bytes: u32| {
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
    linker.func_wrap(MODULE, "input", |mut caller: Caller<'_, GuestState>| {
        place(&mut caller, |chunk| chunk.input)
    })?;
    linker.func_wrap(MODULE, "offset", |mut caller: Caller<'_, GuestState>| {
        place(&mut caller, |chunk| chunk.offset)
    })?;
    Ok(linker)
}

/// The rows that a guest hands over, and the fuel that looking at it is worth.
struct Given {
    at: u32,
    bytes: u64,
    fuel: u64,
}

/// Takes `fuel` from the guest.
fn charge(caller: &mut Caller<'_, GuestState>, fuel: u64) -> Result<()> {
    let left = caller.get_fuel()?.checked_sub(fuel).ok_or(Trap::OutOfFuel)?;
    caller.set_fuel(left)
}

/// The bytes that spans name: the host copies or hashes them, as often as a guest names them. A span that
/// is longer than the chunk is refused later.
fn named_bytes(given: &[u8], entry_bytes: usize, chunk_bytes: usize) -> u64 {
    let len = |entry: &[u8]| u32::from_le_bytes(entry[4..8].try_into().expect("4 bytes"));
    let lens = given.chunks_exact(entry_bytes).map(|entry| u64::from(len(entry)));
    lens.map(|len| len.min(chunk_bytes as u64)).sum()
}

/// Passes what is `given` in the guest's memory to `take`. With `entry_bytes`, it is entries that begin with a
/// span, and the bytes of these take fuel, too.
fn hand_over(
    mut caller: Caller<'_, GuestState>,
    Given { at, bytes, fuel }: Given,
    entry_bytes: Option<usize>,
    take: Take,
) -> Result<()> {
    charge(&mut caller, fuel)?;
    let memory = caller.data_mut().memory()?;
    let start = at as usize;
    let place = usize::try_from(bytes).ok().map(|bytes| start..start.saturating_add(bytes));
    let place = place.filter(|place| place.end <= memory.data_size(&caller)).ok_or_else(|| {
        let told = format!("it handed over {bytes} bytes at address {at}, outside of its memory");
        refuse(&mut caller, told)
    })?;
    if let Some(entry_bytes) = entry_bytes {
        let given = &memory.data(&caller)[place.clone()];
        let named = scope::with(|chunk, _| named_bytes(given, entry_bytes, chunk.bytes.len()));
        charge(&mut caller, named.unwrap_or(0))?;
    }
    let (all, state) = memory.data_and_store_mut(&mut caller);
    let given = &all[place];
    if state.is_closing() && matches!(state.answers(), AnswerForm::Ordered(_)) {
        return Err(state.refuse("it handed over records in mgs_close, where they have no place in the order of its output".to_owned()));
    }
    let taken = scope::with(|chunk, out| take(state.answers(), given, chunk.bytes, out));
    let taken = taken.unwrap_or_else(|| {
        Err("it handed over records outside of mgs_chunk and mgs_close".to_owned())
    });
    taken.map_err(|fault| state.refuse(fault))
}

/// A message of the guest.
fn text(caller: &mut Caller<'_, GuestState>, at: u32, bytes: u32) -> Result<String> {
    let memory = caller.data_mut().memory()?;
    let said = memory.data(&caller).get(at as usize..).and_then(|rest| rest.get(..bytes as usize));
    let said = said.map(crate::plain);
    said.ok_or_else(|| refuse(caller, "it gave a message outside of its memory".to_owned()))
}

/// A fact about the current chunk.
fn place<T>(caller: &mut Caller<'_, GuestState>, fact: impl FnOnce(Chunk<'_>) -> T) -> Result<T> {
    let found = if caller.data().is_closing() { None } else { scope::with(|chunk, _| fact(chunk)) };
    found.ok_or_else(|| {
        refuse(caller, "it asked for the place of a chunk when it had none".to_owned())
    })
}

fn refuse(caller: &mut Caller<'_, GuestState>, detail: String) -> wasmtime::Error {
    caller.data_mut().refuse(detail)
}
