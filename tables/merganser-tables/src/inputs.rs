//! Inputs as they are typed: files, folders, patterns and addresses of objects.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use merganser_objects::ObjectStores;
use merganser_shell::failure::Failure;
use merganser_shell::serving::heap;
use merganser_shell::signals::Cancel;
use merganser_storage::address::is_address;
use merganser_tables::{TableInput, find_files};

use crate::sentences::{told, told_of_objects};

/// The object stores of a command, which begin their threads when an address is named.
pub(crate) struct Stores {
    cancel: Cancel,
    begun: OnceLock<ObjectStores>,
}

impl Stores {
    /// Waits for a store end with `cancel`.
    pub(crate) fn new(cancel: &Cancel) -> Stores {
        Stores { cancel: cancel.clone(), begun: OnceLock::new() }
    }

    /// The stores.
    ///
    /// # Errors
    /// When the system refuses threads.
    pub(crate) fn get(&self) -> Result<&ObjectStores, Failure> {
        if let Some(begun) = self.begun.get() {
            return Ok(begun);
        }
        // Pieces and parts come and go in all threads. A sort in 96M from an object to an object took 170 MiB without it, and 115
        // with it.
        heap::keep_little();
        let cancel = self.cancel.clone();
        let begun = ObjectStores::new(move || cancel.is_set());
        let begun =
            begun.map_err(|error| Failure::on(Path::new("threads for object stores"), &error))?;
        Ok(self.begun.get_or_init(|| begun))
    }

    /// The files and objects that typed words name, in order.
    ///
    /// # Errors
    /// Those of files and stores: a file or an object that is not there, or can't be read.
    pub(crate) fn find(&self, typed: &[PathBuf]) -> Result<Vec<TableInput>, Failure> {
        let mut inputs = Vec::new();
        for word in typed {
            if is_address(word) {
                inputs.extend(self.get()?.find(word).map_err(told_of_objects)?);
            } else {
                let files = find_files(std::slice::from_ref(word)).map_err(told)?;
                inputs.extend(files.into_iter().map(TableInput::File));
            }
        }
        Ok(inputs)
    }
}

/// Refuses an address where only a file or folder of this machine can be.
///
/// # Errors
/// Such an address.
pub(crate) fn refuse_address(option: &str, path: &Path, what: &str) -> Result<(), Failure> {
    if is_address(path) {
        return Err(format!(
            "{option}: {what} on a disk of this machine, and {} is an address",
            path.display()
        )
        .into());
    }
    Ok(())
}
