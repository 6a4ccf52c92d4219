//! The payments of each customer: a csv file whose first column is a name and whose second is an amount.
//!
//! The name is a span of the chunk, so it is not copied; the amounts are added by the engine.

use std::cell::RefCell;

#[unsafe(link_section = "merganser.ssdlet")]
#[used]
static SECTION: [u8; JSON.len()] = *JSON;
const JSON: &[u8; 208] = br#"{"abi": 1, "name": "sales", "about": "what each customer paid", "input": {"csv": {"separator": 44, "header": false}}, "memory": 8388608, "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}}"#;

#[link(wasm_import_module = "mgs")]
unsafe extern "C" {
    fn emit_values(values: *const Value, count: u32);
    fn error_at(place: u32, text: *const u8, bytes: u32) -> !;
}

/// A key in the current chunk, with a number.
#[repr(C)]
struct Value {
    offset: u32,
    bytes: u32,
    value: i64,
}

/// Values are handed over in batches of this many.
const BATCH: usize = 1024;
/// Bytes behind a chunk that may be read.
const BEHIND: usize = 16;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[unsafe(no_mangle)]
extern "C" fn mgs_abi() -> i32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn mgs_buffer(bytes: u32) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(bytes as usize + BEHIND, 0);
        buffer.as_mut_ptr()
    })
}

#[unsafe(no_mangle)]
extern "C" fn mgs_chunk(chunk: *const u8, bytes: u32) -> i32 {
    // SAFETY: the host wrote this many bytes there, into the buffer that mgs_buffer gave it.
    let chunk = unsafe { std::slice::from_raw_parts(chunk, bytes as usize) };
    let mut values = Vec::with_capacity(BATCH);
    let mut place = 0;
    for row in chunk.split_inclusive(|byte| *byte == b'\n') {
        match amount_of(row) {
            Some((name_bytes, value)) => {
                values.push(Value { offset: place, bytes: name_bytes as u32, value });
            }
            None => fail(place, "the row is no NAME,AMOUNT"),
        }
        if values.len() == BATCH {
            hand_over(&mut values);
        }
        place += row.len() as u32;
    }
    hand_over(&mut values);
    0
}

/// The length of the name, and the amount.
fn amount_of(row: &[u8]) -> Option<(usize, i64)> {
    let name_bytes = row.iter().position(|byte| *byte == b',')?;
    let rest = std::str::from_utf8(&row[name_bytes + 1..]).ok()?;
    let amount = rest.split(',').next()?.trim().parse().ok()?;
    Some((name_bytes, amount))
}

fn hand_over(values: &mut Vec<Value>) {
    // SAFETY: the host reads this many values from there before it returns.
    unsafe { emit_values(values.as_ptr(), values.len() as u32) };
    values.clear();
}

fn fail(place: u32, text: &str) -> ! {
    // SAFETY: the host reads this text, and does not return.
    unsafe { error_at(place, text.as_ptr(), text.len() as u32) }
}
