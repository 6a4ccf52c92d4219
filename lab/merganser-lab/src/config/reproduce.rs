//! The meaning of the options of `merganser reproduce`.

use std::path::PathBuf;

use merganser_device::profile::SsdProfile;
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
        if let Some(experiment) = experiment {
            check_device(experiment, typed.device.as_deref(), &typed.set)?;
        }
        Ok(ReproduceConfig {
            experiment,
            setup: ExperimentSetup {
                size_bytes: typed.size.map(|size| size.0),
                rounds: typed.rounds,
                files: typed.files,
                settings: typed.set,
                device: typed.device,
                dir: typed.dir,
                pool_bytes: typed.memory.map(|size| size.0),
            },
            json: typed.json,
            plot: typed.plot,
            quiet: typed.quiet,
        })
    }
}

/// Refuses a device, or changes of one, that the experiment can't take.
fn check_device(
    experiment: &Experiment,
    device: Option<&str>,
    changes: &[String],
) -> Result<(), Failure> {
    let others = |takes: fn(&Experiment) -> bool| {
        let all = merganser_papers::list().iter();
        let names: Vec<_> = all.filter(|other| takes(other)).map(|other| other.name).collect();
        names.join(", ")
    };
    let name = experiment.name;
    if !changes.is_empty() && !experiment.takes_settings() {
        let others = others(Experiment::takes_settings);
        return Err(format!(
            "--set: {name} has no modelled device whose parameters can be changed; these have one: {others}"
        )
        .into());
    }
    let Some(device) = device else { return Ok(()) };
    if !experiment.takes_device() {
        let others = others(Experiment::takes_device);
        return Err(
            format!("--device: {name} does not run on another device; these do: {others}").into()
        );
    }
    SsdProfile::preset(device).map_err(|error| format!("--device: {error}"))?;
    Ok(())
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
            (&["--plot", "x.png"], "--plot: 'x.png' does not end in .svg, the one kind of plot"),
        ];
        for (options, sentence) in table {
            let typed = [&["reproduce", "triton-disk"], *options].concat();
            assert_eq!(refusal(&typed), *sentence, "{options:?}");
        }
    }

    #[test]
    fn an_experiment_without_such_a_device_says_which_have_one() {
        let refused =
            |name: &str, option: &[&str]| refusal(&[&["reproduce", name], option].concat());
        for name in ["triton-disk", "ssd-validate"] {
            let said = refused(name, &["--set", "channels=8"]);
            let expected =
                format!("--set: {name} has no modelled device whose parameters can be changed; ");
            assert!(said.starts_with(&expected), "{said}");
            for other in ["ssd-buffer", "hcdd-time", "activesort-sort", "isc-energy"] {
                assert!(said.contains(other), "{said}");
            }
        }
        for name in ["triton-disk", "ssd-buffer", "hcdd-time", "isc-energy"] {
            assert_eq!(
                refused(name, &["--device", "830"]),
                format!(
                    "--device: {name} does not run on another device; these do: activesort-throughput, \
                     activesort-sort, activesort-channels"
                )
            );
        }
        let said = refused("activesort-sort", &["--device", "floppy"]);
        assert!(
            said.starts_with("--device: no device is called floppy: there are jasmine, "),
            "{said}"
        );
    }
}
