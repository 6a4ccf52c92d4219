//! The report that was asked for.

use std::path::{Path, PathBuf};

use crate::apart::{Precious, refuse_overwriting};
use crate::args::{ReportArgs, TypedSize};
use crate::failure::Failure;

/// A report that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportConfig {
    /// The file to write.
    pub path: PathBuf,
    /// The kind of file.
    pub form: ReportForm,
    /// The machine's price, in dollars.
    pub price_dollars: Option<f64>,
    /// The machine's power, in watts.
    pub power_watts: Option<f64>,
    /// The bytes that can be written to the SSD during its life.
    pub endurance_bytes: Option<u64>,
}

/// The kinds of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportForm {
    /// A page for people.
    Html,
    /// Data for programs.
    Json,
}

impl ReportForm {
    /// The form for a file, by the end of its name.
    ///
    /// # Errors
    /// A name with another end.
    pub fn of_path(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Ok(ReportForm::Html),
            Some("json") => Ok(ReportForm::Json),
            _ => {
                let path = path.display();
                let sentence = format!(
                    "--report: '{path}' ends neither in .html, for a page, nor in .json, for data"
                );
                Err(sentence.into())
            }
        }
    }
}

/// The file of a report, and its kind.
///
/// # Errors
/// A name that ends neither in .html nor in .json.
pub fn report_file(typed: Option<PathBuf>) -> Result<Option<(PathBuf, ReportForm)>, Failure> {
    let Some(path) = typed else { return Ok(None) };
    let form = ReportForm::of_path(&path)?;
    Ok(Some((path, form)))
}

/// Refuses a report that would overwrite one of `read`, which other options name. Inputs and results are looked at
/// when the work begins.
pub fn refuse_overwriting_lists<'a>(
    typed: &ReportArgs,
    read: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let Some(path) = &typed.report else { return Ok(()) };
    refuse_overwriting("--report", path, read.into_iter().map(|path| Precious::Input(path)))
}

/// Less than any drive endures: a unit was forgotten.
const ENDURANCE_BYTES_MIN: u64 = 1 << 30;

impl ReportConfig {
    /// The report of these options; `None` when no report is asked for.
    pub fn new(typed: ReportArgs) -> Result<Option<Self>, Failure> {
        let ReportArgs { report, price, power, endurance } = typed;
        let figures = [
            (price.is_some(), "--price"),
            (power.is_some(), "--power"),
            (endurance.is_some(), "--endurance"),
        ];
        let Some(path) = report else {
            return match figures.into_iter().find(|(given, _)| *given) {
                Some((_, flag)) => {
                    Err(format!("{flag}: is for a report; add --report FILE.html").into())
                }
                None => Ok(None),
            };
        };
        let form = ReportForm::of_path(&path)?;
        for (figure, flag, what) in [(price, "--price", "dollars"), (power, "--power", "watts")] {
            if figure.is_some_and(|figure| !figure.is_finite() || figure <= 0.0) {
                return Err(format!("{flag}: a number of {what} above 0").into());
            }
        }
        let endurance_bytes = endurance.map(|TypedSize(bytes)| bytes);
        if endurance_bytes.is_some_and(|bytes| bytes < ENDURANCE_BYTES_MIN) {
            let why =
                "--endurance: less than any drive endures; give its TBW with a unit, such as 600TB";
            return Err(why.to_owned().into());
        }
        Ok(Some(ReportConfig {
            path,
            form,
            price_dollars: price,
            power_watts: power,
            endurance_bytes,
        }))
    }
}
