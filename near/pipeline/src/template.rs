//! The command of a stage, with places for the names of files.
//!
//! | in the command | variable | what |
//! |---|---|---|
//! | `{in}` | `MERGANSER_IN` | the output of the stage before; for the first stage, the partition |
//! | `{out}` | `MERGANSER_OUT` | the file to write |
//! | `{dir}` | `MERGANSER_DIR` | a new folder for any files |
//! | `{part}` | `MERGANSER_PART` | the partition |
//! | `{k}` | `MERGANSER_K` | its number, from 0 |
//! | `{NAME.out}`, `{NAME.dir}` | | the same of an earlier stage |
//!
//! Other braces stay, so `awk '{print $1}'` and `${k}` need no care. A place may be anywhere in a command, in quotes
//! and here-documents too, because only [`PlainName`]s are put there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::names::PlainName;

/// What a place in a command stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplatePlace {
    In,
    Out,
    Dir,
    Part,
    K,
    OutOf(usize),
    DirOf(usize),
}

/// How a stage gives its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultForm {
    /// It prints it.
    Printed,
    /// It writes the file `out`.
    Out,
    /// It writes files of its own into its folder.
    Dir,
}

/// A command that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<TemplatePiece>,
    pub(super) writes: ResultForm,
    /// The earlier stages whose files it names.
    pub(super) reads: Vec<usize>,
    /// Whether it names the partition itself.
    pub(super) reads_part: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Place(TemplatePlace),
}

/// A command that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing to run.
    #[error("the command is empty")]
    Empty,
    /// A zero byte can't be in a command.
    #[error("the command has a zero byte")]
    Zero,
    /// A stage that is not there, or comes later.
    #[error("{{{0}}} names no earlier stage")]
    NoSuchStage(String),
    /// The stage before does not write one file.
    #[error(
        "it reads {{in}}, but the stage '{0}' writes a folder; name its files, such as {{{0}.dir}}/FILE"
    )]
    NoIn(String),
    /// The named stage does not write one file.
    #[error(
        "{{{0}.out}}: the stage '{0}' writes a folder; name its files, such as {{{0}.dir}}/FILE"
    )]
    NoOut(String),
}

impl Template {
    /// Reads a command; `earlier` are the stages before it, with what they write.
    pub(super) fn parse(
        command: &str,
        earlier: &[(&str, ResultForm)],
    ) -> Result<Self, TemplateError> {
        if command.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        if command.contains('\0') {
            return Err(TemplateError::Zero);
        }
        let mut pieces = Vec::new();
        let mut rest = command;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}').map(|length| open + length) else { break };
            let word = &rest[open + 1..close];
            // The shell's own.
            let is_variable = rest[..open].ends_with('$');
            let place = if is_variable { None } else { place_of(word, earlier)? };
            let until = if place.is_some() { open } else { open + 1 };
            push_text(&mut pieces, &rest[..until]);
            match place {
                Some(of) => {
                    pieces.push(TemplatePiece::Place(of));
                    rest = &rest[close + 1..];
                }
                None => rest = &rest[until..],
            }
        }
        push_text(&mut pieces, rest);
        let has = |wanted: TemplatePlace, variable: &str| {
            let placed =
                |piece: &TemplatePiece| matches!(piece, TemplatePiece::Place(of) if *of == wanted);
            pieces.iter().any(placed) || command.contains(variable)
        };
        let writes = if has(TemplatePlace::Out, "MERGANSER_OUT") {
            ResultForm::Out
        } else if has(TemplatePlace::Dir, "MERGANSER_DIR") {
            ResultForm::Dir
        } else {
            ResultForm::Printed
        };
        let reads_in = has(TemplatePlace::In, "MERGANSER_IN");
        let reads_part = has(TemplatePlace::Part, "MERGANSER_PART");
        if let Some((name, ResultForm::Dir)) = earlier.last().filter(|_| reads_in) {
            return Err(TemplateError::NoIn((*name).to_owned()));
        }
        let reads = pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Place(TemplatePlace::OutOf(stage) | TemplatePlace::DirOf(stage)) => {
                Some(*stage)
            }
            _ => None,
        });
        let reads = reads.collect();
        Ok(Template { pieces, writes, reads, reads_part })
    }

    /// The command with the names of files in it.
    pub(super) fn fill(&self, name_of: &dyn Fn(TemplatePlace) -> PlainName) -> OsString {
        let mut command = Vec::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => command.extend_from_slice(text.as_bytes()),
                TemplatePiece::Place(of) => command.extend_from_slice(name_of(*of).as_bytes()),
            }
        }
        OsString::from_vec(command)
    }
}

fn push_text(pieces: &mut Vec<TemplatePiece>, text: &str) {
    match pieces.last_mut() {
        Some(TemplatePiece::Text(last)) => last.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(TemplatePiece::Text(text.to_owned())),
    }
}

fn place_of(
    word: &str,
    earlier: &[(&str, ResultForm)],
) -> Result<Option<TemplatePlace>, TemplateError> {
    let place = match word {
        "in" => TemplatePlace::In,
        "out" => TemplatePlace::Out,
        "dir" => TemplatePlace::Dir,
        "part" => TemplatePlace::Part,
        "k" => TemplatePlace::K,
        word => {
            let Some((name, what)) = word.rsplit_once('.') else { return Ok(None) };
            if !is_stage_name(name) || !["out", "dir"].contains(&what) {
                return Ok(None);
            }
            let stage = earlier.iter().position(|(earlier, _)| *earlier == name);
            let stage = stage.ok_or_else(|| TemplateError::NoSuchStage(word.to_owned()))?;
            match (what, earlier[stage].1) {
                ("out", ResultForm::Dir) => return Err(TemplateError::NoOut(name.to_owned())),
                ("out", _) => TemplatePlace::OutOf(stage),
                _ => TemplatePlace::DirOf(stage),
            }
        }
    };
    Ok(Some(place))
}

/// Whether a stage or a pool can have this name: it is part of the names of files.
#[must_use]
pub fn is_stage_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(allowed)
}

/// The command of a merge. It has places for the results of all partitions.
///
/// | in the command | variable | what |
/// |---|---|---|
/// | `{outs}` | | the results, in the order of their partitions |
/// | `{list}` | `MERGANSER_LIST` | a file with their names, one in each line |
/// | `{out}` | `MERGANSER_OUT` | the file to write, instead of printing |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergeTemplate {
    command: String,
    /// Whether it takes the results one by one; otherwise it reads them from standard input.
    pub(super) names_files: bool,
    /// Whether it writes a file instead of printing.
    pub(super) writes_file: bool,
}

impl MergeTemplate {
    pub(super) fn parse(command: &str) -> Result<Self, TemplateError> {
        if command.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        if command.contains('\0') {
            return Err(TemplateError::Zero);
        }
        let has = |word: &str| command.contains(word);
        Ok(MergeTemplate {
            command: command.to_owned(),
            names_files: has("{outs}") || has("{list}") || has("MERGANSER_LIST"),
            writes_file: has("{out}") || has("MERGANSER_OUT"),
        })
    }

    pub(super) fn fill(&self, outs: &[PlainName], list: &PlainName, out: &PlainName) -> OsString {
        let outs: Vec<_> = outs.iter().map(PlainName::as_bytes).collect();
        let outs = outs.join(&b' ');
        let places: [(&str, &[u8]); 3] =
            [("{outs}", &outs), ("{list}", list.as_bytes()), ("{out}", out.as_bytes())];
        let mut command = Vec::new();
        let mut rest = self.command.as_str();
        while let Some(at) = rest.find('{') {
            command.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            let is_variable = command.ends_with(b"$");
            let found = places.iter().find(|(word, _)| !is_variable && rest.starts_with(word));
            match found {
                Some((word, value)) => {
                    command.extend_from_slice(value);
                    rest = &rest[word.len()..];
                }
                None => {
                    command.push(b'{');
                    rest = &rest[1..];
                }
            }
        }
        command.extend_from_slice(rest.as_bytes());
        OsString::from_vec(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> PlainName {
        PlainName::new(name).expect("plain")
    }

    fn filled(command: &str) -> String {
        let earlier = [("make", ResultForm::Dir), ("use", ResultForm::Printed)];
        let template = Template::parse(command, &earlier).expect("a command");
        let of = |place: TemplatePlace| match place {
            TemplatePlace::K => plain("7"),
            TemplatePlace::DirOf(stage) => plain(&format!("w/{stage}/dir")),
            TemplatePlace::OutOf(stage) => plain(&format!("w/{stage}/out")),
            place => plain(&format!("w/{place:?}")),
        };
        template.fill(&of).into_string().expect("text")
    }

    #[test]
    fn places_become_names() {
        for (command, expected) in [
            ("gzip <{in} >{out}", "gzip <w/In >w/Out"),
            ("a {k} {part} {dir}/x", "a 7 w/Part w/Dir/x"),
            ("{make.dir}/db {use.out}{use.dir}", "w/0/dir/db w/1/outw/1/dir"),
            ("awk '{print $1}' {x} {} {", "awk '{print $1}' {x} {} {"),
            ("for k in 1; do echo ${k} ${in}; done", "for k in 1; do echo ${k} ${in}; done"),
            ("{{in}}", "{w/In}"),
        ] {
            assert_eq!(filled(command), expected, "{command}");
        }
    }

    #[test]
    fn stages_write_one_file_or_a_folder() {
        let writes = |command: &str| Template::parse(command, &[]).expect("a command").writes;
        assert_eq!(writes("gzip"), ResultForm::Printed);
        assert_eq!(writes("a {dir}/x"), ResultForm::Dir);
        assert_eq!(writes("a {dir}/x {out}"), ResultForm::Out);
        assert_eq!(writes("a >\"$MERGANSER_OUT\""), ResultForm::Out);
        let after = |command: &str| Template::parse(command, &[("make", ResultForm::Dir)]).err();
        assert_eq!(after("a {in}"), Some(TemplateError::NoIn("make".into())));
        assert_eq!(after("a {make.out}"), Some(TemplateError::NoOut("make".into())));
        assert_eq!(after("a {later.out}"), Some(TemplateError::NoSuchStage("later.out".into())));
        assert_eq!(after("a {make.dir}"), None);
        assert_eq!(after(" "), Some(TemplateError::Empty));
    }

    #[test]
    fn a_merge_names_results_or_reads_them() {
        let outs = [plain("p/0/out"), plain("p/1/out")];
        let fill = |command: &str| {
            let merge = MergeTemplate::parse(command).expect("a command");
            let filled = merge.fill(&outs, &plain("list"), &plain("o"));
            (filled.into_string().expect("text"), merge.names_files, merge.writes_file)
        };
        assert_eq!(fill("sort -m {outs}"), ("sort -m p/0/out p/1/out".into(), true, false));
        assert_eq!(fill("x {list} {out} {y"), ("x list o {y".into(), true, true));
        assert_eq!(
            fill("awk '{outsider}' ${out}"),
            ("awk '{outsider}' ${out}".into(), false, true)
        );
    }
}
