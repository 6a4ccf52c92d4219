//! Results that are made in stages: the folder where one grows, and how it gets its name.
//!
//! ```text
//!   OUT                 the result: it appears complete or not at all
//!   .OUT.unfinished/    next to it while it is made: a view's runs, a journal, a partial output, files
//!   .IN.merganser-consumed   an input whose bytes are being given back
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `target` | the file or folder that a name means, and the file that is there now |
//! | `folder` | the folder of unfinished work: its owner, and the lock that admits one process |
//! | `publish` | giving a complete file its name without taking the name from another program's file |
//! | `claim` | the hidden name of an input whose bytes are given back |
//! | `names`, `look` | the names next to a result and an input; the file that has a name now |
//! | `contents` | the files in a folder of unfinished work |
//! | `verdict` | what a folder of unfinished work is, and whether it may be removed |
//! | `holders` | which process has a lock, for messages |
//! | `noted` | work on a result of inputs that stay, with a note that says so |
//! | `view` | a view that grows in such a folder, from inputs that stay |
//! | `files` | a folder of files that grows there, from inputs that stay |
//! | `attributes` | the mode and owner of a result |

mod attributes;
mod claim;
mod contents;
mod files;
mod folder;
mod holders;
mod look;
mod names;
mod noted;
mod publish;
mod target;
mod verdict;
mod view;

use std::time::Duration;

pub use attributes::ResultAttributes;
pub use claim::{
    ClaimError, OTHER_LINK, claim, claim_unlinked, has_claimed, lock_file, open_input, unclaim_all,
};
pub use contents::WorkContents;
pub use files::UnfinishedFiles;
pub use folder::WorkFolder;
pub use holders::{LockHolder, holder_of};
pub use look::{find, is_at, is_restored, note_of};
pub use names::{claimed_name, claimed_path, is_work_name, work_name};
pub use noted::DoomedFolders;
pub use publish::publish;
pub use target::{NAME_BYTES_MAX, Replaced, Target, may_remove};
pub use verdict::{
    Evidence, NextStep, NoteFacts, PipelineFacts, SortFacts, Verdict, WorkFacts, judge,
};
pub use view::UnfinishedView;

pub use crate::error::{SpecialKind, TargetError, WorkError};

/// How long a lock may stay taken before another process counts as at work.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
