//! A view that is made from inputs that stay.

use std::fs;
use std::path::Path;

use super::noted::NotedWork;
use super::{DoomedFolders, ResultAttributes, Target, WorkError, find};
use crate::{Notice, ResultSource, ResultsError};

/// A view that is being made from inputs that stay. If it is dropped before
/// [`UnfinishedView::publish`], its folder is removed. A killed process leaves the folder, and the next
/// process that makes the same view removes it.
pub struct UnfinishedView(NotedWork);

impl UnfinishedView {
    /// Starts the view `path`, which is made of `inputs`. Its folder is on the list `doomed` until it is published or
    /// removed; `tell` gets what is cleared away.
    ///
    /// # Errors
    /// When a file already has that name; as [`super::WorkFolder::open`] and [`super::WorkFolder::clear`].
    pub fn create(
        path: &Path,
        inputs: &[ResultSource<'_>],
        doomed: Box<dyn DoomedFolders>,
        tell: &dyn Fn(&Notice),
    ) -> Result<Self, ResultsError> {
        let exists = || WorkError::ViewExists(path.to_owned()).into();
        if find(path).map_err(ResultsError::on(path))?.is_some() {
            return Err(exists());
        }
        let refuse_taken = |target: &Target| match target.found()? {
            None => Ok(()),
            Some(_) => Err(exists()),
        };
        NotedWork::begin(Target::new(path)?, inputs, doomed, tell, refuse_taken).map(UnfinishedView)
    }

    /// The folder that it grows in.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the view its name, durably.
    ///
    /// # Errors
    /// As [`super::WorkFolder::become_view`].
    pub fn publish(self) -> Result<(), ResultsError> {
        self.0.spare();
        let (path, target) = (self.0.path().to_owned(), self.0.target().clone());
        let mut folder = self.0.finish();
        let done = folder.become_view(&target, ResultAttributes::of_new());
        if done.is_err() && !folder.is_view() {
            // The folder is still locked. If the removal fails, the next process that makes this view removes it.
            let _ = fs::remove_dir_all(path);
        }
        done
    }
}
