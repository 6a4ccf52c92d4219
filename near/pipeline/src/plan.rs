//! The settings of a pipeline, checked.

use std::path::PathBuf;
use std::time::Duration;

use merganser_results::pipeline::{MergeBy, PARTITIONS_MAX, Partitions, PieceFormat, PipelineWork};
use merganser_sort::journal::{CommandNote, JournalText};
use merganser_sort::run::magic::ContentKind;

use super::error::SettingsError;
use super::folder::WorkPaths;
use super::template::{MergeTemplate, ResultForm, Template, is_stage_name};

/// A stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStage {
    /// Its name, part of the names of files.
    pub name: String,
    /// The shell's command.
    pub command: String,
    /// The pool whose threads run it.
    pub pool: String,
    /// Whether its files stay until [`finish`](super::finish), for the caller.
    pub keep: bool,
}

/// Threads that run stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagePool {
    /// Its name.
    pub name: String,
    /// How many stages it runs at a time.
    pub threads: usize,
}

/// A pipeline to run.
#[derive(Debug, Clone)]
pub struct PipelineSettings {
    /// The records that are kept whole.
    pub records: PieceFormat,
    /// The content of the inputs: [`PieceFormat::content`], or their bytes as they are stored.
    pub content: ContentKind,
    /// How the inputs are divided.
    pub partitions: Partitions,
    /// Bytes of a partition of an automatic division, at most.
    pub partition_bytes_max: Option<u64>,
    /// Bytes of all inputs, if the caller has counted them.
    pub total_bytes: Option<u64>,
    /// The stages, in order.
    pub stages: Vec<PipelineStage>,
    /// The pools.
    pub pools: Vec<StagePool>,
    /// How results become one output.
    pub merge: MergeBy,
    /// Partitions between their cut and the end of their last stage, at most; `None`: one for each thread of
    /// the pools, and one more for each pool.
    pub in_flight: Option<usize>,
    /// Bytes of temporary files, at most.
    pub temp_limit_bytes: Option<u64>,
    /// How often a failed command is repeated.
    pub retries: u32,
    /// The longest time of one try.
    pub time_limit: Option<Duration>,
    /// Memory for decompressors.
    pub memory_bytes: u64,
    /// The folder of unfinished work: this user's own, and locked by the caller.
    pub folder: PathBuf,
    /// The command, for a user who finds the folder.
    pub command: CommandNote,
}

/// A stage whose command was understood.
#[derive(Debug)]
pub(super) struct PlannedStage {
    pub(super) name: String,
    pub(super) template: Template,
    pub(super) pool: usize,
}

/// Checked settings.
#[derive(Debug)]
pub(super) struct PipelinePlan {
    pub(super) stages: Vec<PlannedStage>,
    pub(super) pools: Vec<StagePool>,
    /// `None` for one after the other.
    pub(super) merge: Option<MergeTemplate>,
    /// For the partition and each stage's output: the last stage that reads it. A result is read by the merge.
    last_reader: Vec<usize>,
    pub(super) in_flight: usize,
}

impl PipelineSettings {
    pub(super) fn work(&self) -> PipelineWork {
        let stages = self.stages.iter();
        PipelineWork {
            records: self.records,
            as_stored: self.content == ContentKind::AsStored,
            partitions: self.partitions,
            stages: stages.map(|stage| (stage.name.clone(), stage.command.clone())).collect(),
            merge: self.merge.clone(),
            folder: JournalText(self.command.folder.0.clone()),
        }
    }

    /// Checks the settings without running anything.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.plan().map(drop)
    }

    pub(super) fn plan(&self) -> Result<PipelinePlan, SettingsError> {
        match self.partitions {
            Partitions::Count(count) if !(1..=PARTITIONS_MAX).contains(&count) => {
                return Err(SettingsError::Count);
            }
            Partitions::Bytes(0) => return Err(SettingsError::Bytes),
            _ => {}
        }
        let mut stages: Vec<PlannedStage> = Vec::new();
        for stage in &self.stages {
            let name = stage.name.clone();
            if !is_stage_name(&name) {
                return Err(SettingsError::Name(name));
            }
            if name == "part" || name == "merge" {
                return Err(SettingsError::Reserved(name));
            }
            if stages.iter().any(|other| other.name == name) {
                return Err(SettingsError::Twice(name));
            }
            let pool = self.pools.iter().position(|pool| pool.name == stage.pool);
            let pool = pool.filter(|pool| self.pools[*pool].threads > 0).ok_or_else(|| {
                SettingsError::NoPool { stage: name.clone(), pool: stage.pool.clone() }
            })?;
            let earlier: Vec<(&str, ResultForm)> =
                stages.iter().map(|stage| (&*stage.name, stage.template.writes)).collect();
            let template = Template::parse(&stage.command, &earlier);
            let template =
                template.map_err(|error| SettingsError::Command { stage: name.clone(), error })?;
            stages.push(PlannedStage { name, template, pool });
        }
        match stages.last() {
            None => return Err(SettingsError::NoStage),
            Some(last) if last.template.writes == ResultForm::Dir => {
                return Err(SettingsError::LastWritesFolder(last.name.clone()));
            }
            Some(_) => {}
        }
        let merge = match &self.merge {
            MergeBy::Cat => None,
            MergeBy::Command(command) => {
                Some(MergeTemplate::parse(command).map_err(SettingsError::Merge)?)
            }
        };
        let threads: usize = self.pools.iter().map(|pool| pool.threads).sum();
        let usual = threads.saturating_add(self.pools.len());
        Ok(PipelinePlan {
            last_reader: last_readers(&stages, &self.stages),
            stages,
            pools: self.pools.clone(),
            merge,
            in_flight: self.in_flight.unwrap_or(usual).max(1),
        })
    }
}

/// Item 0 is the partition, item s + 1 the output of stage s.
fn last_readers(stages: &[PlannedStage], settings: &[PipelineStage]) -> Vec<usize> {
    let mut last = vec![0; stages.len() + 1];
    for (at, stage) in stages.iter().enumerate() {
        // Its input is what the stage before wrote.
        last[at] = last[at].max(at);
        if stage.template.reads_part {
            last[0] = at;
        }
        for read in &stage.template.reads {
            last[read + 1] = at;
        }
    }
    last[stages.len()] = usize::MAX;
    for (at, _) in settings.iter().enumerate().filter(|(_, stage)| stage.keep) {
        last[at + 1] = usize::MAX;
    }
    last
}

impl PipelinePlan {
    /// Whether results are gathered as they come, and then removed; if not, they are kept for the merge.
    pub(super) fn gathers(&self) -> bool {
        self.merge.as_ref().is_none_or(|merge| !merge.names_files)
    }

    /// The file in which they are gathered.
    pub(super) fn gathered_path(&self, folder: &WorkPaths) -> Option<PathBuf> {
        let path = if self.merge.is_none() { folder.partial() } else { folder.gathered() };
        self.gathers().then_some(path)
    }

    /// Whether an item (0: the partition, s + 1: the output of stage s) is still needed when the first `ran`
    /// stages have run.
    pub(super) fn is_needed(&self, item: usize, ran: usize) -> bool {
        self.last_reader[item] >= ran
    }
}
