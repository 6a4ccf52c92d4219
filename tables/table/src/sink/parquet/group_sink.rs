//! Row groups on their way to files.

use std::io::Write;

use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::file::writer::SerializedFileWriter;

use super::of_output;
use crate::TableError;
use crate::sink::files::FolderFile;

/// A row group on its way to a file.
pub(super) struct EncodedGroup {
    pub(super) chunks: Vec<ArrowColumnChunk>,
    /// The beginning of the keys of its rows, which is the same for all rows of a partition.
    pub(super) partition: Vec<u8>,
}

/// Takes row groups in order.
pub(super) trait GroupSink: Send {
    /// Appends a row group. The file that has ended by it, if one has, is still to be completed.
    ///
    /// # Errors
    /// Those of the files.
    fn append(&mut self, group: EncodedGroup) -> Result<Option<EndedFile>, TableError>;

    /// Ends the last file.
    ///
    /// # Errors
    /// Those of the files.
    fn finish(&mut self) -> Result<(), TableError>;
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
