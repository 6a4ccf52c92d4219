//! The interface of an SSDlet, version 1: the functions that the host calls, and those that it gives.
#![allow(dead_code)]

/// The functions of the host.
mod host {
    #[link(wasm_import_module = "mgs")]
    extern "C" {
        pub fn emit(records: *const u8, bytes: u32);
        pub fn emit_spans(spans: *const super::Span, count: u32);
        pub fn emit_values(values: *const super::Value, count: u32);
        pub fn error_at(place: u32, text: *const u8, bytes: u32) -> !;
        pub fn input() -> u32;
        pub fn offset() -> u64;
    }
}

/// A key or a record in the current chunk.
#[repr(C)]
pub struct Span {
    pub offset: u32,
    pub bytes: u32,
}

/// A key in the current chunk, with a number.
#[repr(C)]
pub struct Value {
    pub offset: u32,
    pub bytes: u32,
    pub value: i64,
}

/// A record that makes no sense.
pub struct Fault {
    /// Its place in the chunk.
    pub place: usize,
    /// The fault in it.
    pub text: String,
}

/// Spans are handed over in batches.
pub struct Spans(Vec<Span>);

impl Spans {
    const BATCH: usize = 4096;

    pub fn new() -> Self {
        Spans(Vec::with_capacity(Self::BATCH))
    }

    /// Hands over `bytes` bytes at `offset` of the chunk: a key with the number 1, or whole records.
    pub fn push(&mut self, offset: usize, bytes: usize) {
        self.0.push(Span { offset: offset as u32, bytes: bytes as u32 });
        if self.0.len() == Self::BATCH {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        // SAFETY: the host reads this many spans before it returns.
        unsafe { host::emit_spans(self.0.as_ptr(), self.0.len() as u32) };
        self.0.clear();
    }
}

/// Hands over keys that are in the current chunk, each with its number.
pub fn emit_values(values: &[Value]) {
    // SAFETY: the host reads this many values before it returns.
    unsafe { host::emit_values(values.as_ptr(), values.len() as u32) };
}

/// Hands over a key and a value that may lie anywhere.
pub fn emit(key: &[u8], value: &[u8]) {
    let mut record = Vec::with_capacity(8 + key.len() + value.len());
    record.extend((key.len() as u32).to_le_bytes());
    record.extend((value.len() as u32).to_le_bytes());
    record.extend(key);
    record.extend(value);
    // SAFETY: the host reads these bytes before it returns.
    unsafe { host::emit(record.as_ptr(), record.len() as u32) };
}

/// The number of the current chunk's input, and its place there.
pub fn place() -> (u32, u64) {
    // SAFETY: the host only answers.
    unsafe { (host::input(), host::offset()) }
}

/// Ends the run.
pub fn fail(fault: &Fault) -> ! {
    // SAFETY: the host reads the text, and does not return.
    unsafe { host::error_at(fault.place as u32, fault.text.as_ptr(), fault.text.len() as u32) }
}

/// Room for chunks, with the 16 bytes behind them that the host fills with zeros.
pub fn buffer(bytes: u32) -> *mut u8 {
    vec![0u8; bytes as usize + 16].leak().as_mut_ptr()
}

/// Says what the SSDlet is (the JSON of its section), and exports its functions, which call `chunk`.
macro_rules! ssdlet {
    ($json:expr) => {
        const JSON: &str = $json;

        #[link_section = "merganser.ssdlet"]
        #[used]
        static SECTION: [u8; JSON.len()] = {
            let mut bytes = [0; JSON.len()];
            let mut at = 0;
            while at < bytes.len() {
                bytes[at] = JSON.as_bytes()[at];
                at += 1;
            }
            bytes
        };

        #[no_mangle]
        extern "C" fn mgs_abi() -> i32 {
            1
        }

        #[no_mangle]
        extern "C" fn mgs_buffer(bytes: u32) -> *mut u8 {
            mgs::buffer(bytes)
        }

        #[no_mangle]
        extern "C" fn mgs_chunk(at: *const u8, bytes: u32) -> i32 {
            // SAFETY: the host wrote this many bytes into the buffer that mgs_buffer gave it.
            let records = unsafe { std::slice::from_raw_parts(at, bytes as usize) };
            let mut out = mgs::Spans::new();
            if let Err(fault) = chunk(records, &mut out) {
                mgs::fail(&fault);
            }
            out.flush();
            0
        }
    };
}
pub(crate) use ssdlet;
