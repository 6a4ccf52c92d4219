//! Our own format: `ns kind offset len [hash,hash,…] [+ns]`, one request per line, below a line that
//! names the format. docs/formats.md has it in full.
//!
//! ```text
//!   # merganser trace 1
//!   0 R 1048576 65536
//!   250000 W 0 4096 531e779b0f0e1b3e6c1f2a9d8c7b6a5f
//!   250000 W 4096 10000 7,9a,7
//!   251000 T 8192 4096
//!   300000 F 0 0 +41000
//! ```
//!
//! Times and bytes are whole numbers. The kinds are read, write, trim and flush. One hash is of all
//! bytes; several are of 4096 bytes each, from the first byte of the request on. A last field with a `+`
//! is the time that the request took when it was recorded; a replay does not use it. Lines that begin
//! with `#` are comments.

use std::io::{self, Write};

use super::error::LineFault;
use super::line::{Field, TraceLine};
use super::parsed::{Parsed, TraceDisk, request};
use crate::request::{CONTENT_BYTES, CONTENT_PAGES_MAX, DeviceRequest, RequestHashes, RequestKind};

/// The first line.
pub const HEADER: &str = "# merganser trace 1";

pub(super) fn parse(line: &TraceLine<'_>) -> Result<Parsed, LineFault> {
    if line.number() == 1 && line.text().trim_ascii_end() != HEADER {
        return Err(LineFault::new(1, line.text(), format!("'{HEADER}'")));
    }
    if line.text().starts_with('#') {
        return Ok(Parsed::Other);
    }
    let mut fields = line.words();
    if let Some(took) = fields.last()
        && let Some(number) = took.text.strip_prefix('+')
    {
        let sound = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if !sound || number.parse::<u64>().is_err() {
            return Err(took.fault("a time in nanoseconds after the +"));
        }
        fields.pop();
    }
    let (arrival, kind, offset, len, content) = match fields[..] {
        [arrival, kind, offset, len] => (arrival, kind, offset, len, None),
        [arrival, kind, offset, len, content] => (arrival, kind, offset, len, Some(content)),
        _ => {
            let expected = "four or five fields: ns, kind, offset, bytes, hashes";
            return Err(line.wrong_count(&fields, 5, expected));
        }
    };
    let arrival_ns = arrival.number("an arrival time in nanoseconds")?;
    let request_kind = match kind.text {
        "R" => RequestKind::Read,
        "W" => RequestKind::Write,
        "T" => RequestKind::Trim,
        "F" => RequestKind::Flush,
        _ => return Err(kind.fault("R, W, T or F")),
    };
    let start = offset.number("an offset in bytes")?;
    let bytes = len.number("a size in bytes")?;
    if bytes == 0 && request_kind != RequestKind::Flush {
        return Err(len.fault("at least one byte"));
    }
    let content = content.map(|field| hashes(&field, bytes)).transpose()?;
    let request = request(arrival_ns, request_kind, start, bytes, content);
    Ok(Parsed::Request(TraceDisk::plain(0), request))
}

/// The content of a request of `bytes`.
fn hashes(field: &Field<'_>, bytes: u64) -> Result<RequestHashes, LineFault> {
    let hash = |text: &str| {
        let sound = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| sound);
        value.ok_or_else(|| field.fault("hashes of at most 32 hexadecimal digits each"))
    };
    if !field.text.contains(',') {
        return Ok(RequestHashes::Whole(hash(field.text)?));
    }
    let pages = bytes.div_ceil(CONTENT_BYTES);
    let found = field.text.split(',').count() as u64;
    if !(2..=CONTENT_PAGES_MAX).contains(&pages) {
        return Err(field.fault(format!("one hash for a request of {bytes} bytes")));
    }
    if found != pages {
        let expected = format!("one hash, or {pages}, one for each {CONTENT_BYTES} bytes");
        return Err(field.fault(expected));
    }
    let all: Result<Vec<u128>, LineFault> = field.text.split(',').map(hash).collect();
    Ok(RequestHashes::Pages(all?.into()))
}

/// Writes a trace in our format.
pub struct TraceWriter<W> {
    out: W,
}

impl<W: Write> TraceWriter<W> {
    /// Begins with the header.
    ///
    /// # Errors
    /// The writer's own.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{HEADER}")?;
        Ok(TraceWriter { out })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// The writer's own.
    pub fn write(&mut self, request: &DeviceRequest) -> io::Result<()> {
        self.line(request, None)
    }

    /// Adds a request, with the time that it took.
    ///
    /// # Errors
    /// The writer's own.
    pub fn write_timed(&mut self, request: &DeviceRequest, took_ns: u64) -> io::Result<()> {
        self.line(request, Some(took_ns))
    }

    fn line(&mut self, request: &DeviceRequest, took_ns: Option<u64>) -> io::Result<()> {
        let DeviceRequest { arrival, kind, offset, len, content } = request;
        let letter = match kind {
            RequestKind::Read => 'R',
            RequestKind::Write => 'W',
            RequestKind::Trim => 'T',
            RequestKind::Flush => 'F',
        };
        write!(self.out, "{} {letter} {offset} {len}", arrival.0)?;
        match content {
            None => {}
            Some(RequestHashes::Whole(hash)) => write!(self.out, " {hash:x}")?,
            Some(RequestHashes::Pages(hashes)) => {
                for (number, hash) in hashes.iter().enumerate() {
                    let before = if number == 0 { ' ' } else { ',' };
                    write!(self.out, "{before}{hash:x}")?;
                }
            }
        }
        match took_ns {
            Some(took_ns) => writeln!(self.out, " +{took_ns}"),
            None => writeln!(self.out),
        }
    }

    /// Adds a comment of one line.
    ///
    /// # Errors
    /// The writer's own.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "# {}", text.replace(['\n', '\r'], " "))
    }

    /// Passes everything on.
    ///
    /// # Errors
    /// The writer's own.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Hands the writer back, flushed.
    ///
    /// # Errors
    /// The writer's own.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
