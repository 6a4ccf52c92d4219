//! The manifest: the one file that makes a folder of runs a view. Written last, synced, renamed
//! into place: a view exists whole or not at all.
//!
//! ```text
//!   { JSON, see docs/formats.md }\n
//!   crc32c 0123abcd\n              of all bytes before this line
//! ```

use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of};
use merganser_storage::{Directory, DirectoryExt, Storage, StorageExt};
use serde::{Deserialize, Serialize};

use crate::key::OrderSpec;
use crate::record::Format;
use crate::run::Run;
use crate::run::format::{Footer, SIZE_BYTES_MAX, corrupt};
use crate::run::reader::ClosedRun;
use crate::sealed::{seal, unseal};
use crate::{Error, Result};

/// Name of the manifest in a view's folder.
pub const MANIFEST_NAME: &str = "manifest";
const FORMAT_NAME: &str = "merganser-view";
/// Version of a manifest of sorted runs.
const MERGED_VERSION: u32 = 1;
/// Version of a manifest of buckets that are sorted when they are read.
const BUCKETS_VERSION: u32 = 2;
/// Version of a manifest with merged buckets and sorted buckets.
const MIXED_VERSION: u32 = 3;
/// Version of a manifest of sorted runs whose records are combined when they are read.
const UNREDUCED_VERSION: u32 = 4;
/// Version of a manifest of a table whose rows stay in files that are sorted already, outside the view.
const FILES_VERSION: u32 = 5;
/// No manifest is larger.
const BYTES_MAX: u64 = 64 << 20;

/// The parts of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    /// File name that the view bears when it is mounted.
    pub name: String,
    /// Format and order of the records.
    pub order: OrderSpec,
    /// Bytes that come before the first record: the header row of CSV.
    #[serde(with = "hex")]
    pub preamble: Vec<u8>,
    /// Exact number of bytes that a reader gets, including the preamble.
    pub size_bytes: u64,
    /// Number of records.
    pub records: u64,
    /// When it was made, in nanoseconds since 1970; readers see it as the file's time.
    pub made_unix_ns: u64,
    /// The meaning of the records, if a map made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<MapResult>,
    /// The columns of the records, if they are the rows of a table, in the words of the program that made the view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<serde_json::Value>,
    /// In order: every key of a bucket is smaller than every key of the next.
    pub buckets: Vec<Bucket>,
}

/// The meaning of the records of a map's result. The words are those of the program that made it; the engine
/// reads [`MapResult::unreduced`] only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapResult {
    /// Name of the SSDlet.
    pub ssdlet: String,
    /// Type of the keys.
    pub key: String,
    /// Type of the values.
    pub value: String,
    /// How values of one key become one.
    pub combine: String,
    /// Whether records of one key are still to be combined. Only a reader that does it may open the view.
    pub unreduced: bool,
}

/// A set of segments of run files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// In tie order: among equal keys, records of earlier segments come first.
    pub segments: Vec<Segment>,
    /// No full key in it is below; without it the bucket is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<KeyBytes>,
    /// Whether all of its full keys are `from`, so it needs no sort.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_key: bool,
}

/// A full normalised key, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyBytes(#[serde(with = "hex")] pub Vec<u8>);

/// A stretch of a run: all of a sorted run, or one bucket of a bucket file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// File name of the run in the view's folder.
    pub run: String,
    /// Bytes of its records.
    pub bytes: u64,
    /// Number of its records.
    pub records: u64,
    /// CRC32C of the run's index: pins which run this is.
    pub index_crc: u32,
    /// Number of the bucket in a bucket file; `None` for a sorted run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<u32>,
}

impl Bucket {
    /// Whether its segments are unsorted.
    #[must_use]
    pub fn is_unsorted(&self) -> bool {
        self.segments.iter().any(|segment| segment.bucket.is_some())
    }
}

impl Segment {
    /// A whole run in the view's folder.
    #[must_use]
    pub fn of_run(run: &Run) -> Self {
        Self::of_whole(&**run.storage(), run.footer())
    }

    fn of_whole(storage: &dyn Storage, footer: &Footer) -> Self {
        Segment {
            run: storage.name().rsplit('/').next().unwrap_or_default().to_owned(),
            bytes: footer.data_bytes,
            records: footer.records,
            index_crc: footer.index_crc,
            bucket: None,
        }
    }

    /// Finds the run in `folder`, read-only unless `writable`, and checks that it is this one. Its
    /// index is not read yet.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; the storage's own.
    pub(crate) fn find(&self, folder: &Arc<dyn Directory>, writable: bool) -> Result<ClosedRun> {
        let run = ClosedRun::find(folder.open(&self.run, writable)?)?;
        if Self::of_whole(&**run.storage(), run.footer()) == *self {
            return Ok(run);
        }
        let detail = "this is not the run that the manifest names".to_owned();
        Err(corrupt(run.storage().name(), 0, detail))
    }
}

impl Manifest {
    /// Whether what comes before the records is a header, of csv or of lines, and not a byte order mark alone.
    #[must_use]
    pub fn has_header(&self) -> bool {
        let may = self.order.format.has_header() || !self.order.header_prefixes.is_empty();
        may && !self.preamble.is_empty()
    }

    /// A manifest of one bucket of sorted runs.
    #[must_use]
    pub fn new(
        name: String,
        order: OrderSpec,
        preamble: Vec<u8>,
        made_unix_ns: u64,
        segments: Vec<Segment>,
    ) -> Self {
        let buckets = vec![Bucket { segments, from: None, one_key: false }];
        Self::assemble(MERGED_VERSION, name, order, preamble, made_unix_ns, buckets)
    }

    /// A manifest of any number of buckets, in order, each with its `from`: of unsorted segments, or of
    /// sorted runs.
    #[must_use]
    pub fn of_buckets(
        name: String,
        order: OrderSpec,
        preamble: Vec<u8>,
        made_unix_ns: u64,
        buckets: Vec<Bucket>,
    ) -> Self {
        let sorted = buckets.iter().any(|bucket| !bucket.is_unsorted());
        let version = if sorted { MIXED_VERSION } else { BUCKETS_VERSION };
        Self::assemble(version, name, order, preamble, made_unix_ns, buckets)
    }

    fn assemble(
        version: u32,
        name: String,
        order: OrderSpec,
        preamble: Vec<u8>,
        made_unix_ns: u64,
        buckets: Vec<Bucket>,
    ) -> Self {
        let segments = || buckets.iter().flat_map(|bucket| &bucket.segments);
        let bytes: u64 = segments().map(|s| s.bytes).sum();
        Manifest {
            format: FORMAT_NAME.to_owned(),
            version,
            name,
            order,
            size_bytes: u64_of(preamble.len()) + bytes,
            preamble,
            records: segments().map(|s| s.records).sum(),
            made_unix_ns,
            result: None,
            table: None,
            buckets,
        }
    }

    /// Says what the records are. The manifest must be one of sorted runs alone ([`Manifest::new`]).
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    pub fn of_map(self, result: MapResult) -> Self {
        assert_eq!(self.version, MERGED_VERSION, "a map's result is sorted runs");
        let version = if result.unreduced { UNREDUCED_VERSION } else { MERGED_VERSION };
        Manifest { version, result: Some(result), ..self }
    }

    /// Says that the records are the rows of a table with these columns.
    #[must_use]
    pub fn of_table(self, columns: serde_json::Value) -> Self {
        Manifest { table: Some(columns), ..self }
    }

    /// A manifest of a table whose `rows` rows stay in files outside the view. `columns` says which files these are, and what
    /// their columns are.
    #[must_use]
    pub fn of_table_in_files(
        name: String,
        rows: u64,
        made_unix_ns: u64,
        columns: serde_json::Value,
    ) -> Self {
        let order = OrderSpec::new(Format::Keyed);
        let none = Self::assemble(FILES_VERSION, name, order, Vec::new(), made_unix_ns, Vec::new());
        Manifest { records: rows, ..none }.of_table(columns)
    }

    /// Whether the rows are those of a table in files outside the view, which has no runs then.
    #[must_use]
    pub fn is_in_files(&self) -> bool {
        self.version == FILES_VERSION
    }

    /// Whether records of one key are still to be combined.
    #[must_use]
    pub fn is_unreduced(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.unreduced)
    }

    /// Whether its buckets are what its version allows.
    fn has_the_buckets_of_its_version(&self) -> bool {
        let all = |what: fn(&Bucket) -> bool| self.buckets.iter().all(what);
        let pure = all(|bucket| {
            let unsorted = bucket.segments.iter().filter(|segment| segment.bucket.is_some());
            [0, bucket.segments.len()].contains(&unsorted.count())
        });
        pure && match self.version {
            MERGED_VERSION | UNREDUCED_VERSION => {
                self.buckets.len() == 1 && all(|b| b.from.is_none() && !b.is_unsorted())
            }
            BUCKETS_VERSION => all(|b| b.from.is_some() && b.is_unsorted()),
            FILES_VERSION => self.buckets.is_empty(),
            _ => all(|b| b.from.is_some() && (b.is_unsorted() || !b.one_key)),
        }
    }

    /// The bytes of the manifest file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// Reads a manifest file; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::UnknownVersion`].
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Manifest = unseal(file, "manifest", bytes)?;
        if manifest.format != FORMAT_NAME
            || !(MERGED_VERSION..=FILES_VERSION).contains(&manifest.version)
        {
            return Err(Error::UnknownVersion {
                file: file.to_owned(),
                kind: manifest.format,
                version: manifest.version,
                known: format!("{FORMAT_NAME} version {MERGED_VERSION} to {FILES_VERSION}"),
            });
        }
        let segments = manifest.buckets.iter().flat_map(|b| &b.segments);
        let sum = segments.clone().try_fold(0u64, |sum, s| sum.checked_add(s.bytes));
        let records = segments.clone().try_fold(0u64, |sum, s| sum.checked_add(s.records));
        let size = sum.and_then(|sum| sum.checked_add(u64_of(manifest.preamble.len())));
        // A record has at least a byte. In unsorted buckets records of a fixed length change places, so there
        // each has that length; a merge notices by itself when one has not.
        let counted = |s: &Segment| match manifest.order.format {
            Format::Fixed { bytes } if s.bucket.is_some() => {
                s.records.checked_mul(u64_of(bytes)) == Some(s.bytes)
            }
            _ => s.records <= s.bytes,
        };
        if size != Some(manifest.size_bytes)
            || manifest.size_bytes > SIZE_BYTES_MAX
            || !segments.clone().all(counted)
            || !(manifest.is_in_files() || records == Some(manifest.records))
            || manifest.is_in_files() && (manifest.table.is_none() || manifest.size_bytes > 0)
            || !manifest.has_the_buckets_of_its_version()
            || manifest.is_unreduced() != (manifest.version == UNREDUCED_VERSION)
            || segments.clone().any(|s| s.run.contains('/') || s.run.is_empty())
        {
            return Err(corrupt(file, 0, "its sums or names contradict each other".to_owned()));
        }
        Ok(manifest)
    }

    /// Writes the manifest into `folder`, whose runs are synced already. When this returns, the
    /// view exists and survives a power cut.
    ///
    /// # Errors
    /// The device's own.
    pub fn write(&self, folder: &Arc<dyn Directory>) -> Result<()> {
        // The names of the runs are durable before the manifest that names them.
        folder.sync()?;
        folder.publish(MANIFEST_NAME, &self.encode())?;
        Ok(())
    }

    /// Reads the manifest of `folder`.
    ///
    /// # Errors
    /// As [`Manifest::decode`]; [`Error::NotAView`] for a folder without one.
    pub fn read(folder: &Arc<dyn Directory>) -> Result<Self> {
        let file = folder.open(MANIFEST_NAME, false).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::NotAView { folder: folder.name().to_owned(), manifest: MANIFEST_NAME }
            }
            _ => Error::Io(e),
        })?;
        if file.size() > BYTES_MAX {
            return Err(corrupt(file.name(), BYTES_MAX, "too large for a manifest".to_owned()));
        }
        let bytes = file.read_vec(0, usize_of(file.size()))?;
        Self::decode(file.name(), &bytes)
    }
}

/// Bytes as a string of hexadecimal digits.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect();
        let digits = digits.filter(|d| d.len() % 2 == 0);
        let digits = digits.ok_or_else(|| D::Error::custom("not hexadecimal"))?;
        Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
    }
}

/// Now, in nanoseconds since 1970: the time at which a view is made.
#[must_use]
pub fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
