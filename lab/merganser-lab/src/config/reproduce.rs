//! The meaning of the options of `merganser reproduce`.

use std::path::PathBuf;

use merganser_papers::{Experiment, ExperimentSetup};
use merganser_shell::failure::Failure;

use crate::args::ReproduceArgs;

/// One experiment, and where its figures go.
pub(crate) struct ReproduceConfig {
    /// The experiment; `None` lists all.
    pub experiment: Option<&'static Experiment>,
    /// How it is run.
    pub setup: ExperimentSetup,
    /// Where the figures go.
    pub json: Option<PathBuf>,
    /// The file for the plot.
    pub plot: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
}

impl TryFrom<ReproduceArgs> for ReproduceConfig {
    type Error = Failure;

    fn try_from(typed: ReproduceArgs) -> Result<Self, Failure> {
        if typed.size.is_some_and(|size| size.0 < LEAST_BYTES) {
            return Err(format!("--size: at least {LEAST_BYTES} bytes").into());
        }
        if typed.rounds == Some(0) {
            return Err("--rounds: at least 1".to_owned().into());
        }
        if let Some(files) = typed.files.iter().find(|files| !(1..=FILES_MAX).contains(*files)) {
            return Err(format!("--files: {files} is not from 1 to {FILES_MAX}").into());
        }
        if let Some(plot) = &typed.plot
            && plot.extension().is_none_or(|extension| extension != "svg")
        {
            let plot = plot.display();
            return Err(
                format!("--plot: '{plot}' does not end in .svg, the one kind of plot").into()
            );
        }
        let experiment = typed.name.map(|name| {
            let mut all = merganser_papers::list().iter();
            all.find(|experiment| experiment.name == name).expect("the parser knows the names")
        });
        if let Some(experiment) = experiment.filter(|experiment| !experiment.takes_settings())
            && !typed.set.is_empty()
        {
            return Err(format!(
                "--set: {} has no device whose parameters can be changed; activesort-... have",
                experiment.name
            )
            .into());
        }
        Ok(ReproduceConfig {
            experiment,
            setup: ExperimentSetup {
                size_bytes: typed.size.map(|size| size.0),
                rounds: typed.rounds,
                files: typed.files,
                settings: typed.set,
                dir: typed.dir,
                pool_bytes: typed.memory.map(|size| size.0),
            },
            json: typed.json,
            plot: typed.plot,
            quiet: typed.quiet,
        })
    }
}

/// Less than any experiment can use.
const LEAST_BYTES: u64 = 1000;

/// A process may have no more open, often.
const FILES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;

    #[test]
    fn what_cannot_be_measured_is_named() {
        let table: &[(&[&str], &str)] = &[
            (&["--size", "999"], "--size: at least 1000 bytes"),
            (&["--rounds", "0"], "--rounds: at least 1"),
            (&["--files", "8,0"], "--files: 0 is not from 1 to 1000"),
            (&["--files", "1001"], "--files: 1001 is not from 1 to 1000"),
            (
                &["--set", "channels=8"],
                "--set: triton-disk has no device whose parameters can be changed; activesort-... have",
            ),
            (&["--plot", "x.png"], "--plot: 'x.png' does not end in .svg, the one kind of plot"),
        ];
        for (options, sentence) in table {
            let typed = [&["reproduce", "triton-disk"], *options].concat();
            assert_eq!(refusal(&typed), *sentence, "{options:?}");
        }
    }
}
