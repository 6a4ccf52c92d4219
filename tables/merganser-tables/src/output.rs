//! Where the bytes of a table go: a file, standard output, or an object of a store.

use std::io::{self, Write};
use std::path::Path;

use merganser_objects::{ObjectWriter, UploadPlan};
use merganser_results::output::ResultOutput;
use merganser_results::uploads::OpenUpload;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::output;
use merganser_shell::signals::Cancel;
use merganser_sort::{Budget, budget::Reservation};
use merganser_storage::address::is_address;

use crate::inputs::Stores;
use crate::sentences::told_of_objects;

/// A result of bytes, which appears when it is finished.
pub(crate) enum BytesOutput {
    /// A file or a stream of this machine.
    Local(Box<ResultOutput>),
    /// An object of a store.
    Object {
        /// The object.
        object: Box<ObjectWriter>,
        /// The memory of its parts.
        _memory: Reservation,
    },
}

impl BytesOutput {
    /// Opens `path`, a file or an address; `None` is standard output. A result of about `expected_bytes` is sent in parts within
    /// `budget`, and noted in `note_folder` meanwhile.
    ///
    /// # Errors
    /// When it can't be written; too little memory.
    pub(crate) fn open(
        path: Option<&Path>,
        (stores, note_folder): (&Stores, &Path),
        (expected_bytes, budget): (u64, &Budget),
        cancel: &Cancel,
    ) -> Result<BytesOutput, Failure> {
        let Some(address) = path.filter(|path| is_address(path)) else {
            return Ok(BytesOutput::Local(Box::new(output::open(path, cancel)?)));
        };
        let plan = UploadPlan::of_object(expected_bytes, budget.free_bytes());
        let memory = budget.reserve(plan.memory_bytes(), "sending parts of the result")?;
        let object = stores.get()?.create(address, plan, note_folder).map_err(told_of_objects)?;
        tell_aborted(object.aborted());
        Ok(BytesOutput::Object { object: Box::new(object), _memory: memory })
    }

    /// Makes the result visible.
    ///
    /// # Errors
    /// When that fails; there is no result then.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            BytesOutput::Local(file) => Ok(file.finish()?),
            BytesOutput::Object { object, .. } => object.finish().map_err(told_of_objects),
        }
    }
}

impl Write for BytesOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            BytesOutput::Local(file) => file.write(bytes),
            BytesOutput::Object { object, .. } => object.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            BytesOutput::Local(file) => file.flush(),
            BytesOutput::Object { object, .. } => object.flush(),
        }
    }
}

/// Says which uploads of a killed command were aborted.
pub(crate) fn tell_aborted(uploads: &[OpenUpload]) {
    for upload in uploads {
        let name = &upload.object;
        notice(&match &upload.id {
            Some(_) => format!("{name}: an upload that a killed command left, aborted"),
            None => format!(
                "{name}: perhaps an upload that a killed command began is open; look with the tools of the store"
            ),
        });
    }
}
