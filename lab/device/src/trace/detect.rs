//! Detects the format of a trace by its first line that is not blank. A line that fits two formats
//! is refused.

use std::io::BufRead;

use super::error::{TraceError, shortened};
use super::event::BlkparseEvent;
use super::format::TraceFormat;
use super::line::{Field, TraceLine, TraceLines};
use super::own;

pub(super) fn format<R: BufRead>(lines: &mut TraceLines<R>) -> Result<TraceFormat, TraceError> {
    loop {
        let Some(line) = lines.peek()? else {
            let (line, found) = (1, String::new());
            return Err(TraceError::Format { line, found, why: "there is no request".into() });
        };
        if !line.is_blank() {
            return of_line(&line);
        }
        lines.next()?;
    }
}

fn of_line(line: &TraceLine<'_>) -> Result<TraceFormat, TraceError> {
    if line.text().trim_ascii_end() == own::HEADER {
        return Ok(TraceFormat::Merganser);
    }
    let fits = |format: &TraceFormat| match format {
        TraceFormat::Merganser => false,
        format => format.parse(line, BlkparseEvent::default()).is_ok(),
    };
    let mut fitting: Vec<TraceFormat> = TraceFormat::ALL.into_iter().filter(fits).collect();
    if fitting == [TraceFormat::DiskSim, TraceFormat::Mqsim]
        && let Some(format) = told_apart(&line.words())
    {
        fitting = vec![format];
    }
    match fitting[..] {
        [format] => Ok(format),
        [] => Err(error(line, &TraceFormat::ALL, "it is of none of")),
        _ => Err(error(line, &fitting, "name one of")),
    }
}

/// DiskSim and MQSim both have five numbers per line. A time with a decimal point is DiskSim's.
fn told_apart(fields: &[Field<'_>]) -> Option<TraceFormat> {
    fields.first()?.text.contains(['.', 'e', 'E']).then_some(TraceFormat::DiskSim)
}

fn error(line: &TraceLine<'_>, formats: &[TraceFormat], what: &str) -> TraceError {
    let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
    TraceError::Format {
        line: line.number(),
        found: shortened(line.text()),
        why: format!("{what} {}", names.join(", ")),
    }
}
