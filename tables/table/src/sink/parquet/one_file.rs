//! Row groups in one file.

use std::io::Write;

use parquet::file::writer::SerializedFileWriter;

use super::group_sink::{EncodedGroup, EndedFile, GroupSink, append};
use super::of_output;
use crate::TableError;

/// A file that gets all row groups.
pub(super) struct OneFile<'a>(pub(super) SerializedFileWriter<&'a mut (dyn Write + Send)>);

impl GroupSink for OneFile<'_> {
    fn append(&mut self, group: EncodedGroup) -> Result<Option<EndedFile>, TableError> {
        append(group, &mut self.0)?;
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), TableError> {
        self.0.finish().map_err(of_output)?;
        self.0.flush().map_err(|error| merganser_sort::Error::from(error).into())
    }
}
