//! The results of all partitions become one output, in the order of their partitions.
//!
//! | merge | results |
//! |---|---|
//! | one after the other | appended to the output as soon as their turn comes, then removed |
//! | a command that reads standard input | appended to a file, which the command then reads |
//! | a command that names the results | kept until all are there |

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::content::{FolderContent, copy_into};
use super::error::PipelineError;
use super::folder::{OUT_NAME, remove, sync_folder};
use super::names::PlainName;
use super::schedule::{DiskWriter, PipelineContext};
use super::template::MergeTemplate;
use super::tries::Tries;
use merganser_results::pipeline::{PipelineEvent, tree_bytes};

/// Appends results to a file.
pub(super) struct ResultAppender {
    path: PathBuf,
    file: Option<File>,
    /// Whether it counts as a temporary file.
    temporary: bool,
}

impl PipelineContext<'_> {
    /// Where results are gathered as they come; `None` if they are kept.
    pub(super) fn gather(&self) -> Option<ResultAppender> {
        let path = self.plan.gathered_path(self.folder)?;
        Some(ResultAppender { path, file: None, temporary: self.plan.merge.is_some() })
    }

    /// Makes the whole output of the results, which must all be there; returns its bytes.
    pub(super) fn merge(&self) -> Result<u64, PipelineError> {
        let partial = self.folder.partial();
        if let Some(path) = self.plan.gathered_path(self.folder) {
            let (found, bytes) = (tree_bytes(&path), self.lock().done.gathered_bytes);
            if found != bytes {
                return Err(PipelineError::file(path)(other_length(found, bytes)));
            }
        }
        let FolderContent { bytes, crc } = match &self.plan.merge {
            None => {
                // An input without records has no partition.
                let mut how = File::options();
                how.write(true).create(true).truncate(false).mode(0o600);
                let file = how.open(&partial).map_err(PipelineError::file(&partial))?;
                let found = file.sync_all().and_then(|()| file.metadata());
                let bytes = found.map_err(PipelineError::file(&partial))?.len();
                FolderContent { bytes, crc: self.lock().done.gathered_crc.unwrap_or_default() }
            }
            Some(merge) => self.run_merge(merge, &partial)?,
        };
        sync_folder(self.folder.path())?;
        let mut state = self.lock();
        self.note(&mut state, PipelineEvent::Merged { bytes, crc: Some(crc) })?;
        Ok(bytes)
    }

    fn run_merge(
        &self,
        merge: &MergeTemplate,
        partial: &Path,
    ) -> Result<FolderContent, PipelineError> {
        let parts = self.folder.parts();
        let results = u32::try_from(self.lock().done.cuts.len()).expect("six digits");
        let last = self.plan.stages.len();
        let outs: Vec<_> = match merge.names_files {
            true => {
                let out = |k| self.names.name(&self.item_path(k, last).join(OUT_NAME));
                (0..results).map(out).collect()
            }
            false => Vec::new(),
        };
        let list = parts.join("list");
        write_list(&list, &outs)?;
        let listed = self.names.name(&list);
        let gathered = self.folder.gathered();
        let input = (!merge.names_files && results > 0).then_some(&*gathered);
        let made = parts.join("merged");
        remove(&made)?;
        let tries = Tries {
            who: "the merge".to_owned(),
            folder: made.clone(),
            attempt: &|attempt| parts.join(format!("merge.{}-{attempt}.new", std::process::id())),
            command: &|folder| merge.fill(&outs, &listed, &self.names.name(&folder.join(OUT_NAME))),
            variables: &|folder| {
                vec![
                    ("MERGANSER_LIST", listed.clone().into()),
                    ("MERGANSER_OUT", self.names.name(&folder.join(OUT_NAME)).into()),
                ]
            },
            input,
            prints: !merge.writes_file,
            must_write: merge.writes_file,
            said: parts.join("merge.stderr"),
            writer: DiskWriter::Merge,
            failed: &|_| {},
        };
        let worked = tries.run(self)?;
        let out = made.join(OUT_NAME);
        let bytes = fs::metadata(&out).map_err(PipelineError::file(&out))?.len();
        let content = match worked.content {
            alone if alone.bytes == bytes => alone,
            // The command has made other files, too.
            _ => FolderContent::of_path(&out).map_err(PipelineError::file(&out))?,
        };
        fs::rename(&out, partial).map_err(PipelineError::file(partial))?;
        Ok(content)
    }
}

/// The names of the results, one in each line.
fn write_list(path: &Path, outs: &[PlainName]) -> Result<(), PipelineError> {
    let mut names = Vec::new();
    for out in outs {
        names.extend_from_slice(out.as_bytes());
        names.push(b'\n');
    }
    fs::write(path, names).map_err(PipelineError::file(path))
}

/// The error for a file of results that something else has changed.
fn other_length(bytes: u64, gathered_bytes: u64) -> io::Error {
    let text =
        format!("has {bytes} bytes and had {gathered_bytes}; remove the folder to begin again");
    io::Error::other(text)
}

impl ResultAppender {
    /// Appends the result of partition `k`, whose turn it is, and removes it.
    pub(super) fn append(
        &mut self,
        shared: &PipelineContext<'_>,
        k: u32,
    ) -> Result<(), PipelineError> {
        let last = shared.plan.stages.len();
        let from = shared.item_path(k, last).join(OUT_NAME);
        let mut state = shared.lock();
        state.gathering = true;
        let before = FolderContent {
            bytes: state.done.gathered_bytes,
            crc: state.done.gathered_crc.unwrap_or_default(),
        };
        drop(state);
        let after = loop {
            let freed = shared.freed();
            match self.copy(&from, before) {
                // What others remove makes room for it.
                Err(error)
                    if error.is_full_disk() && shared.wait_for_space(DiskWriter::Gather, freed) => {
                }
                other => break other?,
            }
        };
        let mut state = shared.lock();
        let FolderContent { bytes, crc } = after;
        shared.note(&mut state, PipelineEvent::Gathered { k, bytes, crc: Some(crc) })?;
        if self.temporary {
            state.add_used(bytes - before.bytes);
        }
        drop(state);
        shared.release(k, last)?;
        shared.lock().gathering = false;
        Ok(())
    }

    /// Appends a result to what is there; gives what is there then.
    fn copy(&mut self, from: &Path, before: FolderContent) -> Result<FolderContent, PipelineError> {
        let at = before.bytes;
        let on_file = |error| PipelineError::file(&self.path)(error);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut how = File::options();
                how.write(true).create(true).truncate(false).mode(0o600);
                let opened = how.open(&self.path).map_err(on_file)?;
                // Its name must survive a power cut before the journal says that bytes are in it.
                sync_folder(self.path.parent().unwrap_or(Path::new(".")))?;
                none.insert(opened)
            }
        };
        // Bytes of an append that was interrupted are written again.
        let length = file.metadata().map_err(on_file)?.len();
        if length < at {
            return Err(on_file(other_length(length, at)));
        }
        file.set_len(at).and_then(|()| file.seek(SeekFrom::Start(at))).map_err(on_file)?;
        let mut result = File::open(from).map_err(PipelineError::file(from))?;
        let mut after = before;
        copy_into(&mut result, file, &mut after).map_err(on_file)?;
        file.sync_data().map_err(on_file)?;
        Ok(after)
    }
}
