//! SSDlets in WebAssembly that jobs bring, kept by the SHA-256 of their bytes.
//!
//! ```text
//!   a map by SHA-256 ──► kept? ── yes ──► Module ── open(arguments) ──► Ssdlet ── worker ──► the map
//!                          └ no ── the task uploads it ── compile ── keep ──► asks again
//! ```
//!
//! Only what is compiled is kept, and nothing is written to a disk. A module that a map uses stays until the map
//! ends, even if others have taken its place here. Those that no map uses go when there is no room for the code of a
//! new one: a client that fills the room keeps no other from uploading.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{HdfsError, HdfsResult};
use merganser_map::ssdlet::{MapperModule, MemoryLender, NotNow, Sha256, SsdletError};

/// The longest module, in bytes.
pub const MODULE_BYTES_MAX: usize = 4 << 20;
/// Modules that are kept.
const KEPT: usize = 8;
/// Machine code of those that are kept, unless it is one module: half of what all guests of a process may have, so that
/// the other half is left to the guests of sessions.
const KEPT_CODE_BYTES: usize = 16 << 20;

/// Compiles a module with lent memory, and verifies all that it says about itself.
pub type Compile = dyn Fn(&[u8], &dyn MemoryLender) -> HdfsResult<Arc<dyn MapperModule>, SsdletError>
    + Send
    + Sync;

/// The modules of jobs.
pub struct Modules {
    compile: Option<Box<Compile>>,
    /// The one that was used last is the last.
    kept: Mutex<Vec<Arc<dyn MapperModule>>>,
}

impl Modules {
    /// Those that `compile` makes; without it, no job may bring one.
    #[must_use]
    pub fn new(compile: Option<Box<Compile>>) -> Self {
        Modules { compile, kept: Mutex::default() }
    }

    /// The module with this SHA-256.
    ///
    /// # Errors
    /// When it is not here, or no job may bring one.
    pub(super) fn find(&self, sha256: &Sha256) -> HdfsResult<Arc<dyn MapperModule>> {
        if self.compile.is_none() {
            return Err(HdfsError::Uploads);
        }
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|module| module.sha256() == *sha256);
        let at = at.ok_or(HdfsError::Absent { sha256: *sha256 })?;
        let module = kept.remove(at);
        kept.push(module.clone());
        Ok(module)
    }

    /// Compiles a module and keeps it, in the place of the one that was not used for longest.
    ///
    /// # Errors
    /// When it makes no sense, it can't be compiled now, or no job may bring one.
    pub fn add(
        &self,
        bytes: &[u8],
        lender: &dyn MemoryLender,
    ) -> HdfsResult<Arc<dyn MapperModule>> {
        let compile = self.compile.as_ref().ok_or(HdfsError::Uploads)?;
        let mut compiled = compile(bytes, lender);
        if let Some(NotNow::Code { .. }) = compiled.as_ref().err().and_then(NotNow::of_error) {
            // The compiler counts the code of all that are kept. A map that uses one has an `Arc` of its own.
            self.kept.lock().retain(|module| Arc::strong_count(module) > 1);
            compiled = compile(bytes, lender);
        }
        let module = compiled.map_err(|error| refused(&error))?;
        let mut kept = self.kept.lock();
        kept.retain(|other| other.sha256() != module.sha256());
        kept.push(module.clone());
        while kept.len() > KEPT || (kept.len() > 1 && code_bytes(&kept) > KEPT_CODE_BYTES) {
            kept.remove(0);
        }
        Ok(module)
    }
}

/// Machine code of `modules`.
fn code_bytes(modules: &[Arc<dyn MapperModule>]) -> usize {
    modules.iter().map(|module| module.code_bytes()).sum()
}

/// Why a module is not taken.
fn refused(error: &SsdletError) -> HdfsError {
    match NotNow::of_error(error) {
        Some(why) => HdfsError::Busy { what: why.to_string() },
        None => HdfsError::Module { detail: error.to_string() },
    }
}

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modules").field("kept", &self.kept.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use merganser_map::ssdlet::{Alone, Combine, Ssdlet, SsdletDescription, SsdletOutput, Type};
    use merganser_sort::record::Format;

    /// Its first byte is its SHA-256. From 200 on it has 6 MiB of code.
    struct Numbered(u8, SsdletDescription);

    impl MapperModule for Numbered {
        fn sha256(&self) -> Sha256 {
            [self.0; 32]
        }

        fn description(&self) -> &SsdletDescription {
            &self.1
        }

        fn asks_for_places(&self) -> bool {
            false
        }

        fn code_bytes(&self) -> usize {
            if self.0 < 200 { 0 } else { 6 << 20 }
        }

        fn open(&self, _: &str) -> HdfsResult<Box<dyn Ssdlet>, SsdletError> {
            unreachable!("no map is made")
        }
    }

    const LENDER: Alone = Alone { memory_bytes: 0 };

    fn compile(
        bytes: &[u8],
        _: &dyn MemoryLender,
    ) -> HdfsResult<Arc<dyn MapperModule>, SsdletError> {
        let [number, ..] = *bytes else {
            return Err(SsdletError::Failed("nothing".to_owned()));
        };
        let output =
            SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
        let (name, input) = ("n".to_owned(), Format::Lines { delimiter: b'\n' });
        Ok(Arc::new(Numbered(number, SsdletDescription { name, input, output, worker_bytes: 0 })))
    }

    #[test]
    fn the_modules_that_were_used_last_are_kept() {
        let modules = Modules::new(Some(Box::new(compile)));
        assert!(
            matches!(modules.find(&[1; 32]), Err(HdfsError::Absent { sha256 }) if sha256 == [1; 32])
        );
        for number in 0..KEPT as u8 {
            modules.add(&[number], &LENDER).expect("compiled");
        }
        // The oldest one is used again, so that the next one goes, and the same one twice takes one place.
        modules.find(&[0; 32]).expect("kept");
        for _ in 0..2 {
            modules.add(&[100], &LENDER).expect("compiled");
        }
        assert!(modules.find(&[1; 32]).is_err());
        for number in [0, 2, 3, 4, 5, 6, 7, 100] {
            assert_eq!(modules.find(&[number; 32]).expect("kept").sha256(), [number; 32]);
        }
        let Err(HdfsError::Module { detail }) = modules.add(b"", &LENDER) else {
            panic!("not a module")
        };
        assert_eq!(detail, "nothing");
    }

    #[test]
    fn code_of_modules_that_are_kept_is_bounded() {
        let modules = Modules::new(Some(Box::new(compile)));
        for number in [1, 200, 201, 202] {
            modules.add(&[number], &LENDER).expect("compiled");
        }
        for (number, kept) in [(1, false), (200, false), (201, true), (202, true)] {
            assert_eq!(modules.find(&[number; 32]).is_ok(), kept, "{number}");
        }
    }

    #[test]
    fn modules_that_no_map_uses_make_room_for_the_code_of_others() {
        // There is room for two.
        let made: Mutex<Vec<Weak<dyn MapperModule>>> = Mutex::default();
        let modules =
            Modules::new(Some(Box::new(move |bytes: &[u8], lender: &dyn MemoryLender| {
                let mut made = made.lock();
                made.retain(|module| module.strong_count() > 0);
                if made.len() == 2 {
                    return Err(NotNow::Code { ssdlet: "n".to_owned(), most_bytes: 2 }.into());
                }
                let module = compile(bytes, lender)?;
                made.push(Arc::downgrade(&module));
                Ok(module)
            })));
        let used = modules.add(&[1], &LENDER).expect("compiled");
        for number in 2..5 {
            modules.add(&[number], &LENDER).expect("the one before is not used and goes");
        }
        for (number, kept) in [(1, true), (2, false), (3, false), (4, true)] {
            assert_eq!(modules.find(&[number; 32]).is_ok(), kept, "{number}");
        }
        let both = [used, modules.find(&[4; 32]).expect("kept")];
        let Err(HdfsError::Busy { what }) = modules.add(&[5], &LENDER) else {
            panic!("both are in use")
        };
        assert!(what.starts_with("n: the SSDlets in use have too much code: 2 bytes"), "{what}");
        for module in both {
            assert!(modules.find(&module.sha256()).is_ok(), "it stays");
        }
        modules.add(&[5], &LENDER).expect("none is in use");
    }

    #[test]
    fn a_module_that_waits_for_its_turn_in_vain_is_no_bad_module() {
        let modules =
            Modules::new(Some(Box::new(|_: &[u8], _: &dyn MemoryLender| Err(NotNow::Turn.into()))));
        let Err(HdfsError::Busy { what }) = modules.add(&[1], &LENDER) else {
            panic!("others have it")
        };
        assert_eq!(what, "other SSDlets are being compiled; come again later");
    }

    #[test]
    fn a_node_that_takes_none_says_so_at_once() {
        let modules = Modules::new(None);
        assert!(matches!(modules.find(&[1; 32]), Err(HdfsError::Uploads)));
        assert!(matches!(modules.add(&[1], &LENDER), Err(HdfsError::Uploads)));
    }
}
