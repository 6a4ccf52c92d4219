//! SSDlets in WebAssembly: guests that run near the data, within limits.
//!
//! ```text
//!                 bytes of a module
//!                        │ open
//!   size      how much it makes the compiler take
//!   section   what it says it is   ─┐
//!   module    compiled once, checked├─► WasmSsdlet ── worker ──► guest: one store per thread
//!   engine    one per process      ─┘    (ssdlet)                  │  ▲
//!                                                    mgs_chunk     │  │ emit, emit_spans, emit_values
//!                                                                  ▼  │
//!                                                     code of the guest: its memory, its fuel
//!                                                                     │
//!   imports   the functions that a guest may call                     │
//!   answers   what it hands over, checked byte by byte  ◄─────────────┘
//!   scope     the chunk and the emitter, for as long as a call lasts
//!   state     what the host knows about a guest meanwhile
//!   limits    what a guest may use            check      the whole of a guest, tried on a sample
//!   template  projects to begin with
//! ```
//!
//! A guest is core WebAssembly: no WASI, no files, no clock, no threads, no randomness. It gets chunks of
//! whole records and gives keyed records, spans of the chunk, or records in order. The interface is in
//! docs/formats.md; a guide is docs/near/ssdlets.md.
//!
//! Nothing that a guest does reaches further than its own worker. A guest that traps, loops, grows,
//! recurses or hands over what makes no sense ends with a [`SsdletError`] of one sentence.
//!
//! ```
//! use merganser_map::ssdlet::{Chunk, CollectedOutput, Emitter, Ssdlet};
//! use merganser_wasm::{WasmLimits, open};
//!
//! // Every chunk is one key.
//! let module = wat::parse_str(r#"(module
//!     (import "mgs" "emit_spans" (func $emit (param i32 i32)))
//!     (memory (export "memory") 2)
//!     (func (export "mgs_abi") (result i32) i32.const 1)
//!     (func (export "mgs_buffer") (param i32) (result i32) i32.const 1024)
//!     (func (export "mgs_chunk") (param i32 i32) (result i32)
//!         (i32.store (i32.const 4) (local.get 1))
//!         (call $emit (i32.const 0) (i32.const 1))
//!         i32.const 0)
//!     (@custom "merganser.ssdlet" "{\"abi\": 1, \"name\": \"chunks\", \"input\": \"lines\", \"output\": {\"keyed\": {\"key\": \"text\", \"value\": \"i64\", \"combine\": \"sum\"}}}"))"#)?;
//! let ssdlet = open(&module, b"", WasmLimits::default())?;
//! let (mut worker, mut found) = (ssdlet.worker()?, CollectedOutput::default());
//! let chunk = Chunk { input: 0, offset: 0, bytes: b"a line\n" };
//! worker.chunk(chunk, &mut Emitter::collecting(&mut found))?;
//! assert!(found.keyed.contains_key(&b"a line\n"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answers;
mod check;
mod engine;
mod guest;
mod imports;
mod limits;
mod module;
mod scope;
mod section;
mod size;
mod ssdlet;
mod state;
pub mod template;

pub use check::{CheckedGuest, check};
pub use limits::WasmLimits;
pub use section::Declared;
pub use ssdlet::{WasmModule, WasmSsdlet, describe, open, open_within};

/// The version of the interface that guests are written against.
pub const ABI: i32 = 1;

/// The name of the custom section that says what a guest takes and gives.
pub const SECTION: &str = "merganser.ssdlet";

/// The header of guests in C, `mgs.h`.
pub const HEADER: &str = include_str!("../guests/mgs.h");

use merganser_map::ssdlet::SsdletError;

/// A guest's failure, with its name in front.
fn failed(name: &str, detail: impl std::fmt::Display) -> SsdletError {
    SsdletError::Failed(format!("{name}: {detail}"))
}

/// Text of a guest for a sentence: at most 1 KiB, without control characters.
fn plain(text: &[u8]) -> String {
    const BYTES_MAX: usize = 1024;
    let text = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(shown).collect()
}
