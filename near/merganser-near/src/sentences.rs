//! The sentences for errors of programs near the data, with the options that help.

use merganser_map::matrix::MatrixError;
use merganser_map::ssdlet::SsdletError;
use merganser_pipeline::{CommandEnding, PipelineError, SettingsError};
use merganser_shell::failure::{Failure, plain_text};
use merganser_shell::shown;

/// An error that ends a command with a sentence of this program.
pub(crate) trait Told {
    /// The end.
    fn told(self) -> Failure;
}

impl Told for SsdletError {
    fn told(self) -> Failure {
        match self {
            SsdletError::Engine(error) => error.into(),
            SsdletError::Argument { ssdlet, argument, detail } => {
                let flag = flag_of(&ssdlet, &argument);
                Failure::Error(plain_text(format!("{ssdlet}: {flag}: {detail}")))
            }
            SsdletError::ShortRow { file: Some(file), offset, argument, wanted, found } => {
                let flag = flag_of("", argument);
                // A first row that is too short says that the option is wrong.
                Failure::Error(plain_text(if offset == 0 {
                    format!(
                        "{file}: {flag}: there is no column {wanted}; its first row has {found}; choose another column"
                    )
                } else {
                    format!(
                        "{file}: at byte {offset}: {flag}: there is no column {wanted}; the row has {found}; choose another column, or repair the row"
                    )
                }))
            }
            error => Failure::Error(plain_text(error.to_string())),
        }
    }
}

/// The option of an argument of a built-in SSDlet.
fn flag_of(ssdlet: &str, argument: &str) -> String {
    match (argument, ssdlet) {
        ("count", "sample") => "--records".to_owned(),
        ("n", _) => "--length".to_owned(),
        ("words", _) => "--rule".to_owned(),
        ("separator", _) => "--csv-separator".to_owned(),
        ("delimiter", _) => "-z".to_owned(),
        ("quotes", _) => "--csv-quotes".to_owned(),
        // Names of inputs have no option of their own.
        ("names", _) => "--args".to_owned(),
        (argument, _) => format!("--{}", argument.replace('_', "-")),
    }
}

impl Told for MatrixError {
    fn told(self) -> Failure {
        match self {
            MatrixError::Engine(error) => error.into(),
            error => Failure::Error(plain_text(error.to_string())),
        }
    }
}

impl Told for PipelineError {
    fn told(self) -> Failure {
        match self {
            PipelineError::Engine(error) => error.into(),
            PipelineError::File { path, error } => Failure::on(&path, &error),
            PipelineError::Cancelled => Failure::Cancelled,
            error => Failure::Error(pipeline_sentence(&error)),
        }
    }
}

/// The sentence for an error of a pipeline, with the options that help.
fn pipeline_sentence(error: &PipelineError) -> String {
    match error {
        PipelineError::Stage(failure) => {
            let tried = match failure.attempts {
                0 | 1 => String::new(),
                times => format!(", in the last of {times} tries"),
            };
            let advice = match failure.ended {
                _ if failure.disk_full => "; the disk of its output is full",
                CommandEnding::TimeLimit(_) => " (--time-limit)",
                _ => "",
            };
            let said = match (&*failure.said, &failure.log) {
                ("", _) => "; it wrote nothing to standard error".to_owned(),
                (said, None) => format!("; it wrote: {said}"),
                (said, Some(log)) => format!("; it wrote: {said} (more in {})", shown::name(log)),
            };
            let (who, ended) = (&failure.who, &failure.ended);
            plain_text(format!("{who} {ended}{tried}{advice}{said}"))
        }
        PipelineError::TempLimit { .. } => {
            format!("{error}; raise --temp-limit, or take smaller --partitions")
        }
        PipelineError::TooMany { .. } => format!("{error} (--partitions)"),
        PipelineError::NoSize { .. } => format!("{error}; give --partitions a size, such as 64M"),
        PipelineError::Settings(settings) => settings_sentence(settings),
        error => plain_text(error.to_string()),
    }
}

/// The sentence for settings of a pipeline that can't be, with their options.
fn settings_sentence(error: &SettingsError) -> String {
    let option = match error {
        SettingsError::Merge(_) => "--merge",
        SettingsError::Count | SettingsError::Bytes => "--partitions",
        _ => "--stage",
    };
    format!("{option}: {error}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use merganser_map::ssdlet::builtin;

    use super::*;
    use crate::args::NearLine;

    /// A sentence about an argument names an option that there is.
    #[test]
    fn every_argument_has_its_option() {
        let all = NearLine::command();
        let map = all.find_subcommand("map").expect("a subcommand");
        let flags = map.get_arguments().flat_map(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(arg.get_short().map(|short| format!("-{short}")))
        });
        let flags: Vec<_> = flags.collect();
        for builtin in builtin::ALL {
            for argument in builtin.arguments {
                let flag = flag_of(builtin.name, argument.name);
                assert!(flags.contains(&flag), "{} {}: {flag}", builtin.name, argument.name);
            }
        }
    }
}
