//! The sum of the lines of a journal: how far every partition is.

use merganser_sort::Error;

use super::journal::{PartitionCut, PipelineEvent, PipelineRecord};

/// The most partitions: their numbers have six digits.
pub const PARTITIONS_MAX: u32 = 100_000;

/// The state of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineProgress {
    /// Bytes of all inputs, if they were counted.
    pub total: Option<u64>,
    /// The choice of the number of partitions.
    pub split: Option<InputDivision>,
    /// The partitions that were cut.
    pub cuts: Vec<PartitionCut>,
    /// Whether these are all.
    pub all_cut: bool,
    /// For each partition, the bytes of the output of each stage that ran.
    pub ran: Vec<Vec<u64>>,
    /// The checksums of the same, where the journal has them.
    pub ran_crcs: Vec<Vec<Option<u32>>>,
    /// How many results are in the partial output.
    pub gathered: u32,
    /// Bytes of these.
    pub gathered_bytes: u64,
    /// The checksum of these, where the journal has it.
    pub gathered_crc: Option<u32>,
    /// Bytes of the whole output, once it is whole.
    pub merged: Option<u64>,
    /// The checksum of these, where the journal has it.
    pub merged_crc: Option<u32>,
}

/// The error of a line, counted from 1, that can't come after the lines before it.
pub(super) fn contradiction(file: &str, line: usize) -> Error {
    let detail = format!("line {line} contradicts the lines before it");
    Error::Corrupt { file: file.to_owned(), offset: 0, detail }
}

/// How the rest of the input is divided after the first partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputDivision {
    /// The first partition of the rest.
    pub first: u32,
    /// Where it begins.
    pub start: u64,
    /// How many partitions the rest has.
    pub partitions: u32,
}

impl PipelineProgress {
    /// Adds up the lines of a journal; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they contradict one another.
    pub fn of_record(file: &str, record: &PipelineRecord) -> Result<Self, Error> {
        let mut done = PipelineProgress::default();
        let stages = record.header.work.stages.len();
        for (line, event) in record.events.iter().enumerate() {
            done.apply(event, stages).ok_or_else(|| contradiction(file, line + 2))?;
        }
        Ok(done)
    }

    /// Where the next partition begins.
    pub fn cut_bytes(&self) -> u64 {
        self.cuts.last().map_or(0, |cut| cut.start + cut.bytes)
    }

    /// How many partitions have passed all stages.
    pub fn finished(&self, stages: usize) -> usize {
        self.ran.iter().filter(|ran| ran.len() == stages).count()
    }

    /// Adds a line; `None` if it contradicts what is done.
    pub fn apply(&mut self, event: &PipelineEvent, stages: usize) -> Option<()> {
        let allowed = self.merged.is_none()
            && match *event {
                PipelineEvent::Sized { .. } => self.total.is_none() && self.cuts.is_empty(),
                PipelineEvent::Split { first, start, partitions } => {
                    let next = u32::try_from(self.cuts.len()).ok()?;
                    let in_place = first == next && start == self.cut_bytes();
                    let few = (1..=PARTITIONS_MAX).contains(&partitions);
                    self.split.is_none() && !self.all_cut && in_place && few
                }
                PipelineEvent::Cut(cut) => {
                    cut.start.checked_add(cut.bytes)?;
                    let next = cut.k as usize == self.cuts.len() && cut.k < PARTITIONS_MAX;
                    next && !self.all_cut && cut.start == self.cut_bytes() && cut.bytes > 0
                }
                PipelineEvent::AllCut { partitions } => {
                    !self.all_cut && partitions as usize == self.cuts.len()
                }
                PipelineEvent::Ran { k, stage, .. } => {
                    let ran = self.ran.get(k as usize)?.len();
                    stage as usize == ran && ran < stages
                }
                PipelineEvent::Gathered { k, bytes, .. } => {
                    let whole = self.ran.get(k as usize)?.len() == stages;
                    whole && k == self.gathered && bytes >= self.gathered_bytes
                }
                PipelineEvent::Merged { .. } => {
                    self.all_cut && self.ran.iter().all(|ran| ran.len() == stages)
                }
            };
        if !allowed {
            return None;
        }
        match *event {
            PipelineEvent::Sized { bytes } => self.total = Some(bytes),
            PipelineEvent::Split { first, start, partitions } => {
                self.split = Some(InputDivision { first, start, partitions });
            }
            PipelineEvent::Cut(cut) => {
                self.cuts.push(cut);
                self.ran.push(Vec::new());
                self.ran_crcs.push(Vec::new());
            }
            PipelineEvent::AllCut { .. } => self.all_cut = true,
            PipelineEvent::Ran { k, bytes, crc, .. } => {
                self.ran[k as usize].push(bytes);
                self.ran_crcs[k as usize].push(crc);
            }
            PipelineEvent::Gathered { bytes, crc, .. } => {
                self.gathered += 1;
                self.gathered_bytes = bytes;
                self.gathered_crc = crc;
            }
            PipelineEvent::Merged { bytes, crc } => {
                self.merged = Some(bytes);
                self.merged_crc = crc;
            }
        }
        Some(())
    }
}

impl PipelineRecord {
    /// Checks that the lines of a journal do not contradict one another; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check(&self, file: &str) -> Result<(), Error> {
        PipelineProgress::of_record(file, self).map(drop)
    }
}
