//! From a manifest to the sections of a view.
//!
//! ```text
//!   manifest ──► ends of all files ──► memory reserved ──► indexes, checked, on all cores ──► sections
//! ```
//!
//! The ends of the files give the size of the indexes, so their memory is reserved before they are
//! read.

use std::sync::Arc;

use merganser_storage::numbers::{u64_of, usize_of, usize_of_u32};
use merganser_storage::thread::spawn_or_run;
use merganser_storage::{Directory, Storage};

use super::making::{Making, Measure, Section};
use super::manifest::{Bucket, MANIFEST_NAME, Manifest};
use super::sorted::SortedBucket;
use super::unsorted::UnsortedBuckets;
use crate::budget::Reservation;
use crate::distribute::bucket::{self, BucketPiece, BucketSet, slice_bytes};
use crate::distribute::format::{self, BucketFileEnds};
use crate::distribute::stream::least_memory_bytes as least_sort_bytes;
use crate::key::Order;
use crate::merge::segments::Segments;
use crate::merge::sizes::{least_memory_bytes, random_bytes, stream_size};
use crate::pipeline::Workers;
use crate::run::format::{Footer, corrupt};
use crate::run::reader::ClosedRun;
use crate::{Budget, Error, Result, shares};

/// The sections of a view, and their memory.
pub(super) struct Opened {
    pub(super) sections: Vec<Section>,
    /// Streams for which there is memory.
    pub(super) streams: usize,
    pub(super) indexes: Vec<Reservation>,
}

/// Neighbouring buckets of the manifest that make a section.
enum Group<'m> {
    Sorted(&'m Bucket, Vec<ClosedRun>),
    Unsorted(&'m [Bucket]),
}

/// A group whose indexes are in memory.
enum Ready<'m> {
    Sorted(&'m Bucket, Segments),
    Unsorted(&'m [Bucket], BucketSet, Vec<BucketPiece>),
}

/// Opens all that `manifest` names in `folder`; `writable`, to give space of it back.
///
/// # Errors
/// [`Error::Corrupt`]; [`Error::Memory`] with the least that works; the storage's own.
pub(super) fn open(
    folder: &Arc<dyn Directory>,
    manifest: &Manifest,
    order: &Arc<Order>,
    writable: bool,
    (budget, workers): (&Budget, Workers),
) -> Result<Opened> {
    let rising = manifest.buckets.windows(2).all(|two| lower(&two[0]) < lower(&two[1]));
    if !rising {
        let detail = "its buckets are not in the order of their keys".to_owned();
        return Err(corrupt(&format!("{}/{MANIFEST_NAME}", folder.name()), 0, detail));
    }
    let groups = find(folder, manifest, writable, workers.count())?;
    let files = BucketFiles::find(folder, manifest, writable)?;
    let (fences, lists) = reserve(&groups, files.memory_bytes(manifest), budget)?;
    let mut opening = Opening { files, lists, order, budget, threads: workers.count() };
    let ready = opening.load(groups)?;
    let indexes = vec![fences, opening.lists];
    let (sections, streams) = sections(ready, folder.name(), manifest, (budget, workers))?;
    Ok(Opened { sections, streams, indexes })
}

/// The groups of a manifest, with both ends of each sorted run read.
fn find<'m>(
    folder: &Arc<dyn Directory>,
    manifest: &'m Manifest,
    writable: bool,
    threads: usize,
) -> Result<Vec<Group<'m>>> {
    let mut groups = Vec::new();
    for buckets in manifest.buckets.chunk_by(|a, b| a.is_unsorted() && b.is_unsorted()) {
        if buckets[0].is_unsorted() {
            groups.push(Group::Unsorted(buckets));
            continue;
        }
        let segments = buckets[0].segments.iter().collect();
        let found = on_all(threads, segments, |segment| segment.find(folder, writable))?;
        groups.push(Group::Sorted(&buckets[0], found));
    }
    Ok(groups)
}

/// The memory of all fences, and of the lists of buckets, which take at most `list_bytes`.
fn reserve(
    groups: &[Group<'_>],
    list_bytes: u64,
    budget: &Budget,
) -> Result<(Reservation, Reservation)> {
    let footers = |group: &Group<'_>| match group {
        Group::Sorted(_, found) => found.iter().map(|run| *run.footer()).collect(),
        Group::Unsorted(_) => Vec::new(),
    };
    let footers: Vec<Vec<Footer>> = groups.iter().map(footers).collect();
    // Each is bounded, but there may be many of them.
    let sum = |of: &[Footer]| of.iter().map(Footer::memory_bytes).fold(0, u64::saturating_add);
    let fence_bytes = footers.iter().map(|of| sum(of)).fold(0, u64::saturating_add);
    // Only one section is merged at a time, but all fences stay in memory.
    let reading = footers.iter().filter(|of| !of.is_empty());
    let reading = reading.map(|of| least_memory_bytes(of.iter()) - sum(of)).max().unwrap_or(0);
    let least = fence_bytes.saturating_add(reading).saturating_add(list_bytes);
    drop(budget.reserve(least, "reading this view")?);
    let fences = budget.reserve(fence_bytes, "the fences of the view")?;
    Ok((fences, budget.reserve(list_bytes, "the buckets of the view")?))
}

/// The state in which indexes of groups are read.
struct Opening<'o> {
    files: BucketFiles,
    lists: Reservation,
    order: &'o Arc<Order>,
    budget: &'o Budget,
    threads: usize,
}

impl Opening<'_> {
    /// Reads the indexes of all groups and checks them.
    fn load<'m>(&mut self, groups: Vec<Group<'m>>) -> Result<Vec<Ready<'m>>> {
        self.files.open()?;
        let mut ready = Vec::new();
        let mut list_bytes = 0;
        for group in groups {
            ready.push(match group {
                Group::Sorted(bucket, found) => {
                    let runs = on_all(self.threads, found, |run| Ok(Arc::new(run.open()?)))?.into();
                    let order = Arc::clone(self.order);
                    // Duplicates within the view are there to stay: only what makes a view removes
                    // them.
                    let segments = Segments { runs, order, unique: false, width: Arc::default() };
                    Ready::Sorted(bucket, segments)
                }
                Group::Unsorted(buckets) => {
                    let set = self.files.take(buckets, self.order, self.budget)?;
                    let pieces = set.pieces();
                    let stored = set.buckets.iter().map(bucket::StoredBucket::memory_bytes);
                    list_bytes +=
                        stored.sum::<u64>() + u64_of(pieces.len() * size_of::<BucketPiece>());
                    Ready::Unsorted(buckets, set, pieces)
                }
            });
        }
        // Descriptions that no bucket took need no memory any more.
        self.files.indexes = Vec::new();
        self.lists.grow_to(list_bytes)?;
        self.lists.shrink_to(list_bytes);
        Ok(ready)
    }
}

/// The sections that read `ready`, and the number of streams for which there is memory.
fn sections(
    ready: Vec<Ready<'_>>,
    view: &str,
    manifest: &Manifest,
    (budget, workers): (&Budget, Workers),
) -> Result<(Vec<Section>, usize)> {
    let mut sections = Vec::with_capacity(ready.len());
    let (mut start, mut streams) = (Measure::default(), usize::MAX);
    for ready in ready {
        let number = sections.len();
        let (first, buckets) = match &ready {
            Ready::Sorted(bucket, _) => (*bucket, std::slice::from_ref(*bucket)),
            Ready::Unsorted(buckets, ..) => (&buckets[0], *buckets),
        };
        let segments = || buckets.iter().flat_map(|bucket| &bucket.segments);
        let size = Measure {
            bytes: segments().map(|segment| segment.bytes).sum(),
            records: segments().map(|segment| segment.records).sum(),
        };
        let making: Box<dyn Making> = match ready {
            Ready::Sorted(_, segments) => {
                let room = budget.free_bytes().saturating_sub(random_bytes(segments.footers()));
                let size = stream_size(&segments, budget, room, workers)?;
                streams = streams.min(usize_of(room / size.memory_bytes(&segments).max(1)));
                let preamble = u64_of(manifest.preamble.len());
                let (view, view_offset) = (view.to_owned(), preamble + start.bytes);
                Box::new(SortedBucket { segments, size, view, view_offset })
            }
            Ready::Unsorted(_, set, pieces) => {
                let least = shares::for_stream(least_sort_bytes(&set, &pieces));
                drop(budget.reserve(least, "sorting the largest bucket of this view")?);
                Box::new(UnsortedBuckets::new(number, set, pieces, budget, workers.count()))
            }
        };
        sections.push(Section { start, size, lower: lower(first).to_vec(), making });
        start.bytes += size.bytes;
        start.records += size.records;
    }
    Ok((sections, streams))
}

/// No full key in `bucket` is below.
fn lower(bucket: &Bucket) -> &[u8] {
    bucket.from.as_ref().map_or(&[][..], |from| &from.0)
}

/// The bucket files of a view.
struct BucketFiles {
    names: Vec<String>,
    files: Vec<Arc<dyn Storage>>,
    ends: Vec<BucketFileEnds>,
    /// For each file, the buckets that were not taken yet.
    indexes: Vec<Vec<Option<bucket::StoredBucket>>>,
}

impl BucketFiles {
    /// Looks at both ends of every file.
    fn find(folder: &Arc<dyn Directory>, manifest: &Manifest, writable: bool) -> Result<Self> {
        let (names, files, ends, indexes) = Default::default();
        let mut found = BucketFiles { names, files, ends, indexes };
        for bucket in manifest.buckets.iter().filter(|bucket| bucket.is_unsorted()) {
            let [segment] = &bucket.segments[..] else {
                return Err(Error::SeveralUnsorted { folder: folder.name().to_owned() });
            };
            if !found.names.contains(&segment.run) {
                let file = folder.open(&segment.run, writable)?;
                found.ends.push(format::find(&*file)?);
                found.files.push(file);
                found.names.push(segment.run.clone());
            }
        }
        Ok(found)
    }

    /// The most memory that all descriptions can take.
    fn memory_bytes(&self, manifest: &Manifest) -> u64 {
        let unsorted = manifest.buckets.iter().filter(|bucket| bucket.is_unsorted());
        let bounds: usize = unsorted.map(|bucket| lower(bucket).len()).sum();
        self.ends.iter().map(BucketFileEnds::memory_bytes).fold(u64_of(bounds), u64::saturating_add)
    }

    fn open(&mut self) -> Result<()> {
        for (ends, file) in self.ends.iter().zip(&self.files) {
            self.indexes.push(ends.open(&**file)?.into_iter().map(Some).collect());
        }
        Ok(())
    }

    /// The buckets that the manifest describes as `listed`.
    fn take(
        &mut self,
        listed: &[Bucket],
        order: &Arc<Order>,
        budget: &Budget,
    ) -> Result<BucketSet> {
        let mut buckets = Vec::with_capacity(listed.len());
        for bucket in listed {
            let segment = &bucket.segments[0];
            let file = self.names.iter().position(|name| *name == segment.run).expect("found");
            let index = &mut self.indexes[file];
            let found = segment.bucket.and_then(|at| index.get_mut(usize_of_u32(at)));
            let found = found.and_then(Option::take).filter(|found| {
                let counts = (found.bytes, found.records, self.ends[file].index_crc);
                counts == (segment.bytes, segment.records, segment.index_crc)
            });
            let Some(mut found) = found else {
                let detail = "this is not the bucket that the manifest names".to_owned();
                return Err(corrupt(self.files[file].name(), 0, detail));
            };
            let file = u32::try_from(file).expect("each of these files is open");
            found.extents.iter_mut().for_each(|extent| extent.file = file);
            (found.lower, found.one_key) = (lower(bucket).to_vec(), bucket.one_key);
            buckets.push(found);
        }
        Ok(BucketSet {
            files: self.files.clone(),
            buckets,
            order: Arc::clone(order),
            // As in a merge.
            unique: false,
            record_bytes_max: 0,
            slice_bytes: slice_bytes(budget),
        })
    }
}

/// Does `work` with the runs of a view, in order of the results, on `threads` threads: finding runs, and
/// reading and checking their indexes, is work for all of them.
fn on_all<T: Send, R: Send>(
    threads: usize,
    mut items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let work = &work;
    let do_share = |share: Vec<T>| share.into_iter().map(work).collect::<Result<Vec<R>>>();
    let share = items.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while items.len() > share {
            let last = items.split_off((items.len() - 1) / share * share);
            others.push(spawn_or_run(scope, "open", move || do_share(last)));
        }
        let mut done = do_share(items)?;
        for other in others.into_iter().rev() {
            done.extend(other.join().expect("opening does not panic")?);
        }
        Ok(done)
    })
}
