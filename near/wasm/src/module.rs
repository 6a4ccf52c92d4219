//! A module, compiled once, with its imports and exports checked.
//!
//! ```text
//!   bytes ── SHA-256 ──► kept? ── yes ─────────────────────────► Arc<Compiled>
//!                          └ no ── compile ── check ── keep ──►
//! ```
//!
//! Kept are all that are in use, and the last few that were, since sessions of a server open the same
//! ones again and again.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use merganser_map::ssdlet::NotNow;
use merganser_map::ssdlet::{Loan, MemoryLender, SsdletError};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wasmtime::{ExternType, FuncType, InstancePre, Module, ValType};

use crate::engine::engine;
use crate::imports;
use crate::limits::WasmLimits;
use crate::section::Declared;
use crate::size::ModuleSize;
use crate::state::GuestState;

/// Modules that are kept although no SSDlet uses them.
const KEPT: usize = 8;
/// How long a module waits for its turn to be compiled. With the time to compile the longest one it is less than a
/// client of a server waits: threads do not gather behind clients that have gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// Machine code of all modules that are in use, in bytes. No budget counts it: sessions share it, and one that
/// is open and does nothing holds it. A server keeps at most half of it for map tasks to come, unless it is one module.
const CODE_BYTES_MAX: usize = 32 << 20;

/// A module that can be started.
pub(crate) struct Compiled {
    /// What it says about itself.
    pub declared: Declared,
    /// SHA-256 of its bytes.
    pub digest: [u8; 32],
    /// Its length in bytes.
    pub bytes: usize,
    /// Whether it imports a function that tells the place of a chunk.
    pub asks_for_places: bool,
    /// Ready to be started in a store.
    pub instance: InstancePre<GuestState>,
    /// How long compiling took.
    pub compile_time: Duration,
    /// Length of its machine code in bytes.
    pub code_bytes: usize,
}

/// A module's identity: content, and whether a clock watches it.
type ModuleKey = ([u8; 32], bool);

#[derive(Default)]
struct ModuleCache {
    all: HashMap<ModuleKey, Weak<Compiled>>,
    /// The last ones, the oldest first.
    recent: Vec<(ModuleKey, Arc<Compiled>)>,
}

impl ModuleCache {
    fn find(&mut self, key: ModuleKey) -> Option<Arc<Compiled>> {
        let found = self.all.get(&key)?.upgrade()?;
        self.keep(key, found.clone());
        Some(found)
    }

    /// Whether there is room for `more` bytes of code. Those that are kept and not used make room.
    fn has_room(&mut self, more: usize) -> bool {
        let fits = |cache: &ModuleCache| {
            let in_use =
                cache.all.values().filter_map(Weak::upgrade).map(|module| module.code_bytes);
            in_use.sum::<usize>().saturating_add(more) <= CODE_BYTES_MAX
        };
        fits(self) || {
            self.recent.clear();
            fits(self)
        }
    }

    fn keep(&mut self, key: ModuleKey, compiled: Arc<Compiled>) {
        self.recent.retain(|(other, _)| *other != key);
        if self.recent.len() == KEPT {
            self.recent.remove(0);
        }
        self.all.retain(|_, module| module.strong_count() > 0);
        self.all.insert(key, Arc::downgrade(&compiled));
        self.recent.push((key, compiled));
    }
}

/// The module of these bytes, from the ones that are kept or compiled now, with memory of `lender`.
///
/// # Errors
/// Bytes that are no module, or a module that is no SSDlet or too large; [`NotNow`] where it can't be compiled now.
pub(crate) fn compiled(
    bytes: &[u8],
    timed: bool,
    lender: &dyn MemoryLender,
) -> Result<Arc<Compiled>, SsdletError> {
    static CACHE: Mutex<Option<ModuleCache>> = Mutex::new(None);
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let key = (digest, timed);
    if let Some(found) = CACHE.lock().get_or_insert_default().find(key) {
        return Ok(found);
    }
    // One at a time, so that the memory of compiling is that of one module; those that are kept don't wait.
    static COMPILING: Mutex<()> = Mutex::new(());
    let Some(_one) = COMPILING.try_lock_for(PATIENCE) else { return Err(NotNow::Turn.into()) };
    if let Some(found) = CACHE.lock().get_or_insert_default().find(key) {
        return Ok(found);
    }
    let compiled = Arc::new(compile(bytes, digest, timed, lender)?);
    let mut cache = CACHE.lock();
    let cache = cache.get_or_insert_default();
    if !cache.has_room(compiled.code_bytes) {
        let ssdlet = compiled.declared.name.clone();
        return Err(NotNow::Code { ssdlet, most_bytes: CODE_BYTES_MAX }.into());
    }
    cache.keep(key, compiled.clone());
    Ok(compiled)
}

fn compile(
    bytes: &[u8],
    digest: [u8; 32],
    timed: bool,
    lender: &dyn MemoryLender,
) -> Result<Compiled, SsdletError> {
    let declared = Declared::of_module(bytes)?;
    // The first module of a process is not to pay for the engine.
    let engine = engine(timed)?;
    let refused = |detail: &dyn std::fmt::Display| crate::failed(&declared.name, detail);
    let size = ModuleSize::of_module(bytes).map_err(|detail| refused(&detail))?;
    let _memory = memory(&size, lender, &refused)?;
    let begun = Instant::now();
    // Only binary: the text format is not compiled in.
    let module = Module::from_binary(&engine, bytes).map_err(|error| {
        refused(&crate::plain(format!("it can't be compiled: {error:#}").as_bytes()))
    })?;
    let compile_time = begun.elapsed();
    check_imports(&module)
        .and_then(|()| check_exports(&module))
        .map_err(|detail| refused(&detail))?;
    let instance = imports::linker(&engine)
        .and_then(|linker| linker.instantiate_pre(&module))
        .map_err(|error| refused(&crate::plain(error.to_string().as_bytes())))?;
    let code = module.image_range();
    let code_bytes = (code.end as usize).saturating_sub(code.start as usize);
    let asks_for_places = module.imports().any(|import| imports::PLACES.contains(&import.name()));
    Ok(Compiled {
        declared,
        digest,
        bytes: bytes.len(),
        asks_for_places,
        instance,
        compile_time,
        code_bytes,
    })
}

/// The memory to compile a module of this size, until it is compiled.
fn memory(
    size: &ModuleSize,
    lender: &dyn MemoryLender,
    refused: &dyn Fn(&dyn std::fmt::Display) -> SsdletError,
) -> Result<Loan, SsdletError> {
    let (bytes, most) = (size.compile_bytes(), lender.most_bytes());
    match bytes {
        0..=WasmLimits::COMPILE_FREE_BYTES => Ok(Loan::free()),
        _ if bytes <= most => lender.lend(bytes),
        _ => Err(refused(&format_args!(
            "to compile it may take {bytes} bytes of memory, and there are {most}: it has {size}; leave out what it does not use, or give it more memory"
        ))),
    }
}

/// Parameters and results: `i` is an `i32`, `l` an `i64`.
type Signature = (&'static str, &'static str);

/// A function that a guest exports.
struct GuestExport {
    name: &'static str,
    signature: Signature,
    required: bool,
}

const EXPORTS: &[GuestExport] = &[
    GuestExport { name: "mgs_abi", signature: ("", "i"), required: true },
    GuestExport { name: "mgs_buffer", signature: ("i", "i"), required: true },
    GuestExport { name: "mgs_chunk", signature: ("ii", "i"), required: true },
    GuestExport { name: "mgs_args", signature: ("i", "i"), required: false },
    GuestExport { name: "mgs_open", signature: ("", "i"), required: false },
    GuestExport { name: "mgs_close", signature: ("", "i"), required: false },
    GuestExport { name: "_initialize", signature: ("", ""), required: false },
];

fn is_of(found: &FuncType, (params, results): Signature) -> bool {
    let same = |found: &mut dyn Iterator<Item = ValType>, wanted: &str| {
        let letters: String = found
            .map(|of| match of {
                ValType::I32 => 'i',
                ValType::I64 => 'l',
                _ => '?',
            })
            .collect();
        letters == wanted
    };
    same(&mut found.params(), params) && same(&mut found.results(), results)
}

/// `(i32, i64) -> i32`, for a sentence.
fn spelled((params, results): Signature) -> String {
    let words = |letters: &str| {
        let words: Vec<_> =
            letters.chars().map(|letter| if letter == 'i' { "i32" } else { "i64" }).collect();
        words.join(", ")
    };
    match results {
        "" => format!("({})", words(params)),
        _ => format!("({}) -> {}", words(params), words(results)),
    }
}

fn check_imports(module: &Module) -> Result<(), String> {
    for import in module.imports() {
        let name = crate::plain(format!("{}.{}", import.module(), import.name()).as_bytes());
        let known = imports::ALL
            .iter()
            .find(|known| import.module() == imports::MODULE && import.name() == known.0);
        let Some((_, signature)) = known else {
            let names: Vec<_> = imports::ALL.iter().map(|known| known.0).collect();
            return Err(format!(
                "it imports {name}, which is not there; a guest may import of \"{}\": {}",
                imports::MODULE,
                names.join(", ")
            ));
        };
        if !import.ty().func().is_some_and(|found| is_of(found, *signature)) {
            return Err(format!(
                "it imports {name} with another type than {}",
                spelled(*signature)
            ));
        }
    }
    Ok(())
}

fn check_exports(module: &Module) -> Result<(), String> {
    match module.get_export("memory") {
        Some(ExternType::Memory(memory)) if !memory.is_64() && !memory.is_shared() => {}
        Some(_) => return Err("its export memory is no memory of 32 bits".to_owned()),
        None => return Err("it does not export its memory under the name memory".to_owned()),
    }
    for GuestExport { name, signature, required } in EXPORTS {
        match module.get_export(name) {
            Some(ExternType::Func(found)) if is_of(&found, *signature) => {}
            Some(_) => {
                return Err(format!("its export {name} is no function {}", spelled(*signature)));
            }
            None if *required => {
                return Err(format!(
                    "it does not export {name}, a function {}",
                    spelled(*signature)
                ));
            }
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use merganser_map::ssdlet::Alone;

    use super::*;

    const ALONE: Alone = Alone { memory_bytes: 0 };

    fn module(name: &str) -> Arc<Compiled> {
        let text = format!(
            r#"(module (memory (export "memory") 1)
                (func (export "mgs_abi") (result i32) i32.const 1)
                (func (export "mgs_buffer") (param i32) (result i32) i32.const 8)
                (func (export "mgs_chunk") (param i32 i32) (result i32) i32.const 0)
                (@custom "merganser.ssdlet" "{{\"abi\": 1, \"name\": \"{name}\", \"input\": \"lines\", \"output\": {{\"ordered\": {{\"format\": \"lines\"}}}}}}"))"#
        );
        let bytes = wat::parse_str(&text).expect("well-formed");
        let digest = Sha256::digest(&bytes).into();
        Arc::new(compile(&bytes, digest, false, &ALONE).expect("a guest"))
    }

    #[test]
    fn code_in_use_is_bounded_and_kept_code_makes_room() {
        let mut cache = ModuleCache::default();
        let (held, kept) = (module("held"), module("kept"));
        assert!(held.code_bytes > 0);
        let bytes = held.code_bytes;
        cache.keep((held.digest, false), held.clone());
        cache.keep((kept.digest, false), kept);
        assert!(cache.has_room(0) && cache.recent.len() == 2, "both fit");
        assert!(cache.has_room(CODE_BYTES_MAX - bytes), "the one that is not used goes");
        assert!(cache.recent.is_empty() && cache.find((held.digest, false)).is_some());
        assert!(!cache.has_room(CODE_BYTES_MAX), "the other one is in use");
        drop(held);
        assert!(cache.has_room(CODE_BYTES_MAX));
    }
}
