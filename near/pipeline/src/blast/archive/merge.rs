//! Several files of archives become one.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, BufRead, Write};

use super::ArchiveError;
use super::read::{Archives, EvalueStatistics, SubjectHits};

const FEWER: &str = "has fewer batches of queries than the first partition";
const MORE: &str = "has more batches of queries than the first partition";
const OTHER_QUERIES: &str = "has other queries than the first partition";
const NO_ORDER: &str = "has an alignment of a query that is not in its batch, or not in its order";

/// The archives of a partition.
pub struct PartitionArchives<R> {
    /// The file.
    pub reader: R,
    /// The number of its first subject in the whole database.
    pub first: u64,
}

/// What a merge found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// The queries with more subjects than were asked for.
    pub overflowed: BTreeSet<u64>,
    /// The queries for which a part alone has `full` subjects or more: its own search may have left out others.
    pub filled: BTreeSet<u64>,
    /// The queries with subjects of different parts that only their strands may order: their e-values are equal in all
    /// digits of an archive, and BLAST has more.
    pub unclear: BTreeSet<u64>,
}

/// A subject that is next in its part.
struct NextSubject {
    subject: SubjectHits,
    part: usize,
}

impl PartialEq for NextSubject {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for NextSubject {}

impl PartialOrd for NextSubject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NextSubject {
    /// The heap's greatest is the best.
    fn cmp(&self, other: &Self) -> Ordering {
        other.subject.order(&self.subject).then(other.part.cmp(&self.part))
    }
}

/// Merges the archives of parts, in their order, with at most `most` subjects for a query. Each part keeps its own
/// order. A part whose search ended with `full` subjects for a query is noted.
///
/// With `frames`, each query gets an archive of its own: `frames` has one for each, and its alignments are replaced. BLAST's
/// formatter takes the masks of one query for those of another if an archive has several.
///
/// # Errors
/// Files that fail; archives that are not of the same queries.
pub fn merge<R: BufRead>(
    parts: Vec<PartitionArchives<R>>,
    most: usize,
    full: usize,
    frames: Option<R>,
    out: &mut dyn Write,
) -> Result<Merged, ArchiveError> {
    let mut frames = frames.map(|frames| Archives::new(parts.len(), 0, frames));
    let open = |(part, PartitionArchives { reader, first })| Archives::new(part, first, reader);
    let mut parts: Vec<_> = parts.into_iter().enumerate().map(open).collect();
    let mut merged = Merged::default();
    while let Some((first, others)) = parts.split_first_mut() {
        let Some(head) = first.head()? else { break };
        for other in others {
            let Some(found) = other.head()? else { return Err(other.unknown(FEWER)) };
            if found.queries != head.queries {
                return Err(other.unknown(OTHER_QUERIES));
            }
        }
        let next = Vec::new();
        let mut batch =
            BatchMerge { parts: &mut parts, next, wrote: false, unclear: BTreeSet::new() };
        batch.begin()?;
        if frames.is_none() {
            out.write_all(&head.lines)?;
        }
        for query in head.queries {
            match &mut frames {
                None => batch.query(query, most, full, out, &mut merged)?,
                Some(frames) => {
                    begin_frame(frames, query, out)?;
                    batch.query(query, most, full, out, &mut merged)?;
                    batch.end_alignments(out)?;
                    frames.tail(&mut |line| write_line(line, out))?;
                }
            }
        }
        batch.end(frames.is_none(), out, &mut merged)?;
    }
    for rest in parts.iter_mut().chain(&mut frames) {
        if rest.head()?.is_some() {
            return Err(rest.unknown(MORE));
        }
    }
    Ok(merged)
}

/// Writes the head of the archive of a query.
fn begin_frame<R: BufRead>(
    frames: &mut Archives<R>,
    query: u64,
    out: &mut dyn Write,
) -> Result<(), ArchiveError> {
    let Some(head) = frames.head()? else { return Err(frames.unknown(FEWER)) };
    if head.queries != [query] {
        return Err(frames.unknown(OTHER_QUERIES));
    }
    out.write_all(&head.lines)?;
    while frames.subject()?.is_some() {}
    Ok(())
}

fn write_line(line: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}

/// A batch that is merged.
struct BatchMerge<'a, R> {
    parts: &'a mut [Archives<R>],
    /// The next subject of each part.
    next: Vec<Option<SubjectHits>>,
    wrote: bool,
    /// As [`Merged::unclear`], if strands have statistics of their own.
    unclear: BTreeSet<u64>,
}

impl<R: BufRead> BatchMerge<'_, R> {
    fn begin(&mut self) -> Result<(), ArchiveError> {
        for part in self.parts.iter_mut() {
            self.next.push(part.subject()?);
        }
        Ok(())
    }

    /// The next subject of a part, if it is of this query.
    fn of_query(&mut self, part: usize, query: u64) -> Option<NextSubject> {
        let subject = self.next[part].take_if(|subject| subject.query == query)?;
        Some(NextSubject { subject, part })
    }

    fn query(
        &mut self,
        query: u64,
        most: usize,
        full: usize,
        out: &mut dyn Write,
        merged: &mut Merged,
    ) -> Result<(), ArchiveError> {
        let mut counts = vec![0; self.parts.len()];
        let mut heads: BinaryHeap<_> =
            (0..self.parts.len()).filter_map(|part| self.of_query(part, query)).collect();
        let mut taken = 0;
        while let Some(NextSubject { subject, part }) = heads.pop() {
            if heads.peek().is_some_and(|next| next.subject.differs_by_strand(&subject)) {
                self.unclear.insert(query);
            }
            counts[part] += 1;
            if counts[part] == full {
                merged.filled.insert(query);
            }
            if taken < most {
                taken += 1;
                if std::mem::replace(&mut self.wrote, true) {
                    out.write_all(b",\n")?;
                }
                out.write_all(&subject.alignments)?;
            } else {
                merged.overflowed.insert(query);
            }
            self.next[part] = self.parts[part].subject()?;
            heads.extend(self.of_query(part, query));
        }
        Ok(())
    }

    /// Ends the last alignment, if there is one.
    fn end_alignments(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.wrote) {
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Reads what comes after the alignments, and writes it if that is wanted.
    fn end(
        mut self,
        wanted: bool,
        out: &mut dyn Write,
        merged: &mut Merged,
    ) -> Result<(), ArchiveError> {
        for (part, next) in self.parts.iter().zip(&self.next) {
            if next.is_some() {
                return Err(part.unknown(NO_ORDER));
            }
        }
        self.end_alignments(out)?;
        let mut wanted = wanted;
        let mut statistics = EvalueStatistics::default();
        for part in self.parts {
            part.tail(&mut |line| {
                statistics.line(line);
                if wanted { write_line(line, out) } else { Ok(()) }
            })?;
            wanted = false;
        }
        if statistics.are_by_strand() {
            merged.unclear.append(&mut self.unclear);
        }
        Ok(())
    }
}
