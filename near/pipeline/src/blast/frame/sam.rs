//! SAM (`-outfmt 17`): BLAST prints one header for all queries, the formatter one per batch.
//!
//! The header has a line for each query with hits, and names the command. A search without hits prints nothing.

use std::io::{BufRead, Seek, SeekFrom, Write};

use super::{OTHER, OutputFrameError, PeekedLines, Which};

const HEAD: &[u8] = b"@HD\t";
const QUERY: &[u8] = b"@SQ\t";
const PROGRAM: &[u8] = b"@PG\t";

pub(super) fn fill(
    formatted: &mut (impl BufRead + Seek),
    command: &str,
    out: &mut dyn Write,
) -> Result<(), OutputFrameError> {
    let program = header(&mut PeekedLines::of_reader(Which::Formatted, formatted), out)?;
    let Some(program) = program else { return Ok(()) };
    let no_field = |byte: char| byte == '\t' || byte == '\n';
    let command = command.replace(no_field, " ");
    let mut fields = program.trim_end_matches('\n').split('\t').map(|field| match field {
        field if field.starts_with("CL:") => format!("CL:{command} "),
        field => field.to_owned(),
    });
    let mut line = fields.next().unwrap_or_default();
    fields.for_each(|field| line.extend(["\t", &field]));
    line.push('\n');
    out.write_all(line.as_bytes())?;
    formatted.seek(SeekFrom::Start(0))?;
    let mut lines = PeekedLines::of_reader(Which::Formatted, formatted);
    while lines.peek()?.is_some() {
        // The names of subjects are numbers: none begins like a header.
        if lines.begins(b"@")? { lines.pass() } else { lines.write(out)? }
    }
    Ok(())
}

/// Writes the first line of the header and those of all queries; gives that of the program.
fn header(
    lines: &mut PeekedLines<'_>,
    out: &mut dyn Write,
) -> Result<Option<String>, OutputFrameError> {
    let (mut has_head, mut program) = (false, None);
    while let Some(line) = lines.peek()? {
        if line.starts_with(HEAD) && !has_head {
            has_head = true;
            lines.write(out)?;
        } else if line.starts_with(QUERY) {
            lines.write(out)?;
        } else if line.starts_with(PROGRAM) && program.is_none() {
            program = Some(String::from_utf8_lossy(line).into_owned());
            lines.pass();
        } else if line.starts_with(b"@") && !line.starts_with(HEAD) && !line.starts_with(PROGRAM) {
            return Err(lines.unknown(OTHER));
        } else {
            lines.pass();
        }
    }
    match (has_head, program) {
        (true, Some(program)) => Ok(Some(program)),
        (false, None) => Ok(None),
        _ => Err(lines.unknown(OTHER)),
    }
}
