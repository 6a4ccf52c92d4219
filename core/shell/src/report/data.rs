//! A report as JSON: objects on lines of their own, lists of numbers on one.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::report::ReportContent;

/// The report's text.
pub(super) fn data(report: &ReportContent) -> String {
    let mut text = Vec::new();
    let objects = Objects(PrettyFormatter::new());
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, objects);
    report.serialize(&mut serializer).expect("plain data, into memory");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Only objects are spread out.
struct Objects<'a>(PrettyFormatter<'a>);

impl Formatter for Objects<'_> {
    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}
