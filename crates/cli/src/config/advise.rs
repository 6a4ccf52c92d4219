//! The settings of `merganser advise`.

use std::path::PathBuf;

use crate::args::{AdviseArgs, AdviseCommand};

/// The settings of `merganser advise hadoop`.
#[derive(Debug, PartialEq, Eq)]
pub struct AdviseConfig {
    /// The folder whose disk is measured.
    pub dir: PathBuf,
    /// Whether the advice is printed as JSON.
    pub json: bool,
}

impl From<AdviseArgs> for AdviseConfig {
    fn from(typed: AdviseArgs) -> Self {
        let AdviseCommand::Hadoop(typed) = typed.what;
        AdviseConfig { dir: typed.dir, json: typed.json }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;
    use crate::args::Command;

    #[test]
    fn this_folder_is_measured_unless_another_is_named() {
        for (words, dir, json) in
            [(&[][..], ".", false), (&["--dir", "/data"], "/data", false), (&["--json"], ".", true)]
        {
            let words = [&["advise", "hadoop"], words].concat();
            let Command::Advise(typed) = config(&words) else { unreachable!() };
            let expected = AdviseConfig { dir: dir.into(), json };
            assert_eq!(AdviseConfig::from(typed), expected, "{words:?}");
        }
    }
}
