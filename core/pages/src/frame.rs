//! The parts that all pages have: the document around them, and the figures that readers look for first.

use std::fmt::Display;

use crate::text::Escaped;

const STYLE: &str = include_str!("style.css");
/// The option that writes the same figures as data, for most commands.
pub const REPORT_AS_DATA: &str = "--report FILE.json";

/// A document of `body`: its header and its main part. It is XML too if `body` is: every tag is closed. `style` is added to the
/// common one, and `data` is the option that writes the same figures as data.
pub fn document(title: &str, style: &str, body: &str, data: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\" />\n\
         <meta name=\"color-scheme\" content=\"light dark\" />\n<title>{}</title>\n\
         <style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}<footer>merganser {}. This page is complete in \
         itself: no script, no network. The same as data: <code>{data}</code>.</footer>\n</body>\n</html>\n",
        Escaped(title),
        env!("CARGO_PKG_VERSION"),
    )
}

/// The figures that readers look for first, with their names.
pub fn figures<N: Display, V: Display>(figures: &[(N, V)]) -> String {
    let each = figures.iter();
    let each: String =
        each.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n")).collect();
    format!("<dl class=\"figures\">\n{each}</dl>\n")
}
