//! Row groups in the files of a folder.
//!
//! ```text
//!   group ─► the same partition, and room? ─► the file that is open
//!                                        no ─► the next file: part-00001 of this partition, or part-00000 of a new one
//! ```
//!
//! A group is packed before it gets its file, so its size is known, and a file is at most as large as was asked for, unless one
//! group alone is larger. The end of a file, which is written last, is overestimated.

use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::group_sink::{EncodedGroup, EndedFile, GroupSink, append};
use super::of_output;
use crate::TableError;
use crate::sink::files::{FolderFile, TableFolder};
use crate::sink::hive_names::PartitionNames;

/// Files in a folder have this many numbers, so that their order is that of their names.
const FILES_MAX: u32 = 100_000;

/// The files of a folder.
pub(super) struct ManyFiles<'a> {
    folder: &'a dyn TableFolder,
    root: TypePtr,
    properties: WriterPropertiesPtr,
    names: PartitionNames,
    /// Bytes of a file, at most.
    file_bytes: Option<u64>,
    /// Bytes of a file without rows.
    empty_bytes: u64,
    /// Whether all rows are in one partition, and a folder without rows has a file, too.
    has_one_partition: bool,
    /// Where the file that is open belongs, or the last one that was.
    place: Option<FilePlace>,
    open: Option<OpenFile>,
}

struct FilePlace {
    partition: Vec<u8>,
    folders: Vec<String>,
    /// Files of this partition.
    files: u32,
}

struct OpenFile {
    writer: SerializedFileWriter<Box<dyn FolderFile>>,
    /// Bytes that the end of the file takes, at most.
    end_bytes: u64,
}

impl<'a> ManyFiles<'a> {
    pub(super) fn new(
        folder: &'a dyn TableFolder,
        (root, properties): (TypePtr, WriterPropertiesPtr),
        names: PartitionNames,
        has_one_partition: bool,
        file_bytes: Option<u64>,
    ) -> Result<ManyFiles<'a>, TableError> {
        let mut empty = Vec::new();
        let file = SerializedFileWriter::new(&mut empty, root.clone(), properties.clone());
        file.and_then(SerializedFileWriter::close).map_err(TableError::Parquet)?;
        let empty_bytes = empty.len() as u64;
        let (place, open) = (None, None);
        Ok(ManyFiles {
            folder,
            root,
            properties,
            names,
            file_bytes,
            empty_bytes,
            has_one_partition,
            place,
            open,
        })
    }

    /// Makes the next file of a partition.
    fn begin(&mut self, partition: &[u8]) -> Result<&mut OpenFile, TableError> {
        let place = match self.place.take() {
            Some(place) if place.partition == partition => place,
            _ => FilePlace {
                partition: partition.to_vec(),
                folders: self.names.folders(partition)?,
                files: 0,
            },
        };
        let place = self.place.insert(place);
        if place.files == FILES_MAX {
            return Err(TableError::TooManyFiles { folder: place.folders.join("/") });
        }
        let name = format!("part-{:05}.parquet", place.files);
        let file = self.folder.create(&place.folders, &name);
        let file = file.map_err(merganser_sort::Error::from)?;
        place.files += 1;
        let (root, properties) = (self.root.clone(), self.properties.clone());
        let writer = SerializedFileWriter::new(file, root, properties).map_err(of_output)?;
        Ok(self.open.insert(OpenFile { writer, end_bytes: self.empty_bytes }))
    }
}

impl GroupSink for ManyFiles<'_> {
    fn append(&mut self, group: EncodedGroup) -> Result<Option<EndedFile>, TableError> {
        let bytes: u64 = group.chunks.iter().map(|chunk| chunk.close().bytes_written).sum();
        let end_bytes: u64 = group.chunks.iter().map(end_bytes).sum();
        let is_of = |place: &FilePlace| place.partition == group.partition;
        let has_room = |open: &OpenFile| {
            let all = open.writer.bytes_written() as u64 + open.end_bytes + bytes + end_bytes;
            self.file_bytes.is_none_or(|limit| all <= limit)
        };
        let fits =
            self.place.as_ref().is_some_and(is_of) && self.open.as_ref().is_some_and(has_room);
        let ended = if fits { None } else { self.open.take() };
        let open = match &mut self.open {
            Some(open) => open,
            None => self.begin(&group.partition)?,
        };
        open.end_bytes += end_bytes;
        append(group, &mut open.writer)?;
        Ok(ended.map(|ended| EndedFile(ended.writer)))
    }

    fn finish(&mut self) -> Result<(), TableError> {
        if self.place.is_none() && self.has_one_partition {
            // The columns are known even if there are no rows.
            self.begin(&[])?;
        }
        self.open.take().map_or(Ok(()), |open| EndedFile(open.writer).complete())
    }
}

/// Bytes at the end of a file that say where a chunk and its pages are, and what their least and greatest values are; at most
/// this many. The library cuts values of statistics to 64 bytes, and writes those of a chunk twice.
fn end_bytes(chunk: &ArrowColumnChunk) -> u64 {
    let closed = chunk.close();
    let pages = closed.offset_index.as_ref().map_or(0, |index| index.page_locations().len());
    let column = closed.metadata.column_descr();
    let path = column.path().string().len();
    // Lists and structs have a histogram of their levels, for a chunk and for each page.
    let levels = usize::try_from(column.max_def_level() + column.max_rep_level()).unwrap_or(0) + 2;
    (512 + path + 8 * levels + pages * (192 + 8 * levels)) as u64
}
