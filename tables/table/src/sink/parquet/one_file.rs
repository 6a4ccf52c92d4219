//! Row groups in one file.

use std::io::Write;

use parquet::file::writer::SerializedFileWriter;

use super::groups::{EncodedGroup, GroupSink};
use super::of_output;
use crate::TableError;
use crate::sink::files::FolderFile;

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

/// Appends a row group to a file.
pub(super) fn append<W: Write + Send>(
    group: EncodedGroup,
    file: &mut SerializedFileWriter<W>,
) -> Result<(), TableError> {
    let mut written = file.next_row_group().map_err(of_output)?;
    for chunk in group.chunks {
        chunk.append_to_row_group(&mut written).map_err(of_output)?;
    }
    written.close().map_err(of_output)?;
    Ok(())
}

/// A file that has all its row groups.
pub(super) struct EndedFile(pub(super) SerializedFileWriter<Box<dyn FolderFile>>);

impl EndedFile {
    /// Writes its end, and makes it durable.
    pub(super) fn complete(mut self) -> Result<(), TableError> {
        self.0.finish().map_err(of_output)?;
        let synced = self.0.flush().and_then(|()| self.0.inner_mut().sync());
        synced.map_err(|error| merganser_sort::Error::from(error).into())
    }
}
