//! Detects the format of a trace by its first line that is not blank. A line that fits two formats
//! is refused.

use std::io::BufRead;

use super::blkparse::Event;
use super::error::{TraceError, shortened};
use super::format::Format;
use super::line::{Field, Line, Lines};
use super::own;

pub(super) fn format<R: BufRead>(lines: &mut Lines<R>) -> Result<Format, TraceError> {
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

fn of_line(line: &Line<'_>) -> Result<Format, TraceError> {
    if line.text().trim_ascii_end() == own::HEADER {
        return Ok(Format::Merganser);
    }
    let fits = |format: &Format| match format {
        Format::Merganser => false,
        format => format.parse(line, Event::default()).is_ok(),
    };
    let mut fitting: Vec<Format> = Format::ALL.into_iter().filter(fits).collect();
    if fitting == [Format::DiskSim, Format::Mqsim]
        && let Some(format) = told_apart(&line.words())
    {
        fitting = vec![format];
    }
    match fitting[..] {
        [format] => Ok(format),
        [] => Err(error(line, &Format::ALL, "it is of none of")),
        _ => Err(error(line, &fitting, "name one of")),
    }
}

/// DiskSim and MQSim both have five numbers per line. A time with a decimal point is DiskSim's.
fn told_apart(fields: &[Field<'_>]) -> Option<Format> {
    fields.first()?.text.contains(['.', 'e', 'E']).then_some(Format::DiskSim)
}

fn error(line: &Line<'_>, formats: &[Format], what: &str) -> TraceError {
    let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
    TraceError::Format {
        line: line.number(),
        found: shortened(line.text()),
        why: format!("{what} {}", names.join(", ")),
    }
}
