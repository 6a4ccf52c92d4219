//! The sentences for errors of Hadoop's servers, with the options that help.

use merganser_hadoop_node::hdfs::HdfsError;
use merganser_hadoop_node::shuffle::{Shortage, ShuffleError, SpillRefusal};

/// The sentence about a map task that was refused or failed, for its client and the log.
pub(crate) fn hdfs_sentence(error: &HdfsError) -> String {
    match error {
        HdfsError::Memory { .. } => format!("{error} (--memory, --maps)"),
        HdfsError::Replica { .. } => format!("{error} (--hdfs-data-dir)"),
        HdfsError::Uploads => format!("{error} (--job-ssdlets)"),
        other => other.to_string(),
    }
}

/// The sentence of an error of the merge process, with the options of `serve` that its user can change.
pub(crate) fn shuffle_sentence(error: &ShuffleError) -> String {
    match error {
        ShuffleError::Busy { shortage: shortage @ Shortage::Merges { .. } } => {
            format!("busy: {shortage} (--merges); come again")
        }
        ShuffleError::Busy { shortage: shortage @ Shortage::Memory { .. } } => {
            format!("busy: {shortage} (--memory); come again")
        }
        ShuffleError::Refused { path, reason: SpillRefusal::Outside } => {
            format!("{}: it is in none of the folders given by --local-dir", path.display())
        }
        ShuffleError::Refused { path, reason: SpillRefusal::Link } => format!(
            "{}: on the way to it, below its --local-dir, is a link or what is no folder",
            path.display()
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_merge_process_names_the_options_that_bound_it() {
        let busy = |shortage| shuffle_sentence(&ShuffleError::Busy { shortage });
        assert_eq!(
            busy(Shortage::Merges { max: 4 }),
            "busy: all 4 merges are taken (--merges); come again"
        );
        assert_eq!(
            busy(Shortage::Memory { wanted: 5, taken: 8, max: 10 }),
            "busy: 5 bytes more than the 8 of 10 in use (--memory); come again"
        );
        assert_eq!(
            busy(Shortage::Connections { max: 9 }),
            "busy: all 9 connections are in use; come again"
        );
        let refused =
            |reason| shuffle_sentence(&ShuffleError::Refused { path: "/d/s".into(), reason });
        assert_eq!(
            refused(SpillRefusal::Outside),
            "/d/s: it is in none of the folders given by --local-dir"
        );
        assert_eq!(
            refused(SpillRefusal::Link),
            "/d/s: on the way to it, below its --local-dir, is a link or what is no folder"
        );
        assert_eq!(refused(SpillRefusal::NotRegular), "/d/s: it is no regular file");
    }
}
