//! Pipelines: stages of any programs over partitions of a stream, as in pp-mpiBLAST (the dissertation's
//! chapter 4), where a storage node formats a partition while the compute nodes search the one before.
//!
//! ```text
//!   inputs ──► partitions of whole records ──► stage ──► stage ──► results ──► merged in order ──► output
//!              (integrity check, Figure 4.4)   pool A    pool B
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `plan`, `template`, `names` | settings, checked; the places for files in a stage's command; what is put there |
//! | `input`, `border`, `cut`, `cutting` | the stream, borders of records, partitions, how many |
//! | `schedule`, `stage` | who does what next, bounds of disk and partitions; the threads of pools |
//! | `child`, `tries`, `tool` | a command in its process group; one that is tried until it works; one that is no stage |
//! | `gather` | results become one output |
//! | `journal`, `scan`, `done`, `resume`, `folder`, `content` | what is done, on the disk, and how work is continued; checksums of it |
//! | `model`, `report`, `summary` | Equations 4.1 to 4.8 and the recurrence; what was measured |
//! | `run` | all of it |
//!
//! The output does not depend on pools, threads, or how often the pipeline was killed.

pub mod blast;
mod border;
mod child;
mod content;
mod cut;
mod cutting;
mod error;
mod folder;
mod gather;
mod input;
mod journal;
pub mod model;
mod names;
mod plan;
mod report;
mod resume;
mod run;
mod schedule;
mod stage;
mod standing;
mod summary;
mod template;
mod tool;
mod tries;

pub use border::{BadRecord, BorderFinder};
pub use error::{CommandEnding, PipelineError, SettingsError, StageFailure};
pub use input::{InputSource, PipelineInput};
pub use merganser_results::pipeline::{
    InputNote, JournalHeader, MergeBy, PARTIAL_NAME, PARTITIONS_MAX, PARTS_NAME, PartitionCut,
    Partitions, PieceFormat, PipelineEvent, PipelineRecord, PipelineWork,
};
pub use names::PlainNames;
pub use plan::{PipelineSettings, PipelineStage, StagePool};
pub use report::{PipelineReport, PoolTotals, Predictions, StageRun, StageTotals};
pub use run::{PipelineOutcome, PipelineWatch, finish, run};
pub use standing::Standing;
pub use template::{TemplateError, is_stage_name};
pub use tool::{ToolRun, run_tool};
