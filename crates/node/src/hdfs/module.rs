//! SSDlets in WebAssembly that jobs bring, kept by the SHA-256 of their bytes.
//!
//! ```text
//!   a map by SHA-256 ──► kept? ── yes ──► Module ── open(arguments) ──► Ssdlet ── worker ──► the map
//!                          └ no ── the task uploads it ── compile ── keep ──► asks again
//! ```
//!
//! Only what is compiled is kept, and nothing is written to a disk. A module that a map uses stays until the map
//! ends, even if others have taken its place here.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{HdfsError, Result};
use crate::ssdlet::{Description, Ssdlet, SsdletError};

/// The longest module, in bytes.
pub const MODULE_BYTES_MAX: usize = 4 << 20;
/// Modules that are kept.
const KEPT: usize = 8;

/// SHA-256 of the bytes of a module.
pub type Sha256 = [u8; 32];

/// A compiled module.
pub trait Module: Send + Sync {
    /// SHA-256 of its bytes.
    fn sha256(&self) -> Sha256;

    /// What it says about itself.
    fn description(&self) -> &Description;

    /// Whether it can ask for the place of a record in its input.
    fn asks_for_places(&self) -> bool;

    /// Opens it with `arguments`.
    ///
    /// # Errors
    /// When it refuses them, or fails.
    fn open(&self, arguments: &str) -> Result<Box<dyn Ssdlet>, SsdletError>;
}

/// Compiles a module and verifies all that it says about itself.
pub type Compile = dyn Fn(&[u8]) -> Result<Arc<dyn Module>, SsdletError> + Send + Sync;

/// The modules of jobs.
pub struct Modules {
    compile: Option<Box<Compile>>,
    /// The one that was used last is the last.
    kept: Mutex<Vec<Arc<dyn Module>>>,
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
    pub(super) fn find(&self, sha256: &Sha256) -> Result<Arc<dyn Module>> {
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
    /// When it makes no sense, or no job may bring one.
    pub fn add(&self, bytes: &[u8]) -> Result<Arc<dyn Module>> {
        let compile = self.compile.as_ref().ok_or(HdfsError::Uploads)?;
        let module =
            compile(bytes).map_err(|error| HdfsError::Module { detail: error.to_string() })?;
        let mut kept = self.kept.lock();
        kept.retain(|other| other.sha256() != module.sha256());
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(module.clone());
        Ok(module)
    }
}

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modules").field("kept", &self.kept.lock().len()).finish_non_exhaustive()
    }
}

/// In hexadecimal digits.
pub(super) fn hex(sha256: &Sha256) -> String {
    sha256.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssdlet::{Combine, Output, Type};
    use merganser_sort::record::Format;

    /// Its first byte is its SHA-256.
    struct Numbered(u8, Description);

    impl Module for Numbered {
        fn sha256(&self) -> Sha256 {
            [self.0; 32]
        }

        fn description(&self) -> &Description {
            &self.1
        }

        fn asks_for_places(&self) -> bool {
            false
        }

        fn open(&self, _: &str) -> Result<Box<dyn Ssdlet>, SsdletError> {
            unreachable!("no map is made")
        }
    }

    fn compile(bytes: &[u8]) -> Result<Arc<dyn Module>, SsdletError> {
        let [number, ..] = *bytes else {
            return Err(SsdletError::Failed("nothing".to_owned()));
        };
        let output = Output::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
        let (name, input) = ("n".to_owned(), Format::Lines { delimiter: b'\n' });
        Ok(Arc::new(Numbered(number, Description { name, input, output, worker_bytes: 0 })))
    }

    #[test]
    fn the_modules_that_were_used_last_are_kept() {
        let modules = Modules::new(Some(Box::new(compile)));
        assert!(
            matches!(modules.find(&[1; 32]), Err(HdfsError::Absent { sha256 }) if sha256 == [1; 32])
        );
        for number in 0..KEPT as u8 {
            modules.add(&[number]).expect("compiled");
        }
        // The oldest one is used again, so that the next one goes, and the same one twice takes one place.
        modules.find(&[0; 32]).expect("kept");
        for _ in 0..2 {
            modules.add(&[100]).expect("compiled");
        }
        assert!(modules.find(&[1; 32]).is_err());
        for number in [0, 2, 3, 4, 5, 6, 7, 100] {
            assert_eq!(modules.find(&[number; 32]).expect("kept").sha256(), [number; 32]);
        }
        let Err(HdfsError::Module { detail }) = modules.add(b"") else { panic!("not a module") };
        assert_eq!(detail, "nothing");
    }

    #[test]
    fn a_node_that_takes_none_says_so_at_once() {
        let modules = Modules::new(None);
        assert!(matches!(modules.find(&[1; 32]), Err(HdfsError::Uploads)));
        assert!(matches!(modules.add(&[1]), Err(HdfsError::Uploads)));
    }
}
