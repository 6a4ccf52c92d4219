//! Commands that are printed for a user to run. They are put together here from what they mean: names of
//! files and the order of records. The words of a file are never among them, because another user may
//! have written that file, or it came out of an archive.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use merganser_shell::config::{Destination, order_words};
use merganser_shell::input::Input;
use merganser_shell::shown;
use merganser_sort::journal::{JournalText, SortJournal};

use crate::args::{CliCommand, CommandLine};
use crate::config::{SortConfig, SortTask};

/// A command, word by word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdvisedCommand(Vec<OsString>);

impl AdvisedCommand {
    fn of_words<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Self {
        AdvisedCommand(words.into_iter().map(OsStr::to_owned).collect())
    }

    /// The `sort --consume` of a journal. `None` if no command line means exactly that sort: what the
    /// journal says is compared with what the command line means.
    pub(crate) fn sort(journal: &SortJournal) -> Option<Self> {
        let note = &journal.command;
        let output = Path::new(note.output.as_os_str());
        let inputs = journal.inputs.iter().map(|input| Path::new(input.path.as_os_str()));
        let inputs: Vec<_> = inputs.collect();
        if !output.is_absolute() || !inputs.iter().all(|input| input.is_absolute()) {
            return None;
        }
        let mut words: Vec<OsString> = ["merganser", "sort", "--consume"].map(Into::into).into();
        words.extend(order_words(&journal.order));
        words.extend(inputs.iter().map(|input| input.as_os_str().to_owned()));
        words.push(if note.view { "--view" } else { "-o" }.into());
        words.push(output.into());
        let Ok(CommandLine { command: CliCommand::Sort(typed) }) =
            CommandLine::of_words(words.clone())
        else {
            return None;
        };
        let config = SortConfig::try_from(typed).ok()?;
        let SortTask::Sort(sorting) = &config.task else { return None };
        let destination = match note.view {
            true => Destination::View(output.to_owned()),
            false => Destination::File(output.to_owned()),
        };
        let named: Vec<_> = inputs.iter().map(|input| Input::File((*input).to_owned())).collect();
        let is_it = sorting.consume
            && sorting.destination == destination
            && config.order.is_same_order(&journal.order)
            && config.inputs == named;
        is_it.then_some(AdvisedCommand(words))
    }

    /// Copies the view at an absolute path to a file at another; `None` if one isn't absolute.
    pub(crate) fn materialize(view: &Path, output: &Path, consume: bool) -> Option<Self> {
        let words = [
            OsStr::new("merganser"),
            OsStr::new("materialize"),
            view.as_os_str(),
            OsStr::new("-o"),
            output.as_os_str(),
        ];
        let consume = consume.then_some(OsStr::new("--consume"));
        let are_absolute = view.is_absolute() && output.is_absolute();
        are_absolute.then(|| Self::of_words(words.into_iter().chain(consume)))
    }

    /// Removes a folder that was seen to hold nothing that is nowhere else.
    pub(crate) fn remove_folder(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        Some(Self::of_words([OsStr::new("rm"), OsStr::new("-r"), path.as_os_str()]))
    }

    /// Removes a file that has another name.
    pub(crate) fn remove_file(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        Some(Self::of_words([OsStr::new("rm"), path.as_os_str()]))
    }

    /// For a shell, without characters that control the terminal.
    pub(crate) fn line(&self) -> String {
        let words: Vec<_> = self.0.iter().map(shown::command_word).collect();
        words.join(" ")
    }

    /// Its words.
    pub(crate) fn words(&self) -> Vec<JournalText> {
        self.0.iter().map(|word| JournalText::from(word.as_os_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use merganser_sort::journal::{CommandNote, FileNote, InputProgress};
    use merganser_sort::key::OrderSpec;
    use merganser_sort::record::{CsvQuotes, Format};

    use super::*;

    fn journal(order: OrderSpec, input: &str, output: &str) -> SortJournal {
        let text = |text: &str| JournalText(text.as_bytes().to_vec());
        let note = CommandNote {
            words: ["rm", "-rf", "/home/victim"].map(text).into(),
            folder: text("/"),
            output: text(output),
            view: false,
            mode: 0o644,
            owner: None,
        };
        let file =
            FileNote { device: 1, inode: 2, born_unix_ns: None, size: 3, modified_unix_ns: 4 };
        let input = InputProgress { path: text(input), file, taken: 3, given_back: 0 };
        SortJournal::new(note, order, vec![input])
    }

    /// ATTACK finding N2.
    #[test]
    fn n2_the_words_of_a_journal_are_not_printed() {
        let lines = OrderSpec::new(Format::Lines { delimiter: b'\n' });
        let command = AdvisedCommand::sort(&journal(lines.clone(), "/in", "/out"));
        let line = command.expect("a command").line();
        assert_eq!(line, "merganser sort --consume /in -o /out");
        for (input, output) in [("in", "/out"), ("/in", "out"), ("--files0-from=x", "/out")] {
            assert_eq!(AdvisedCommand::sort(&journal(lines.clone(), input, output)), None);
        }
    }

    #[test]
    fn a_command_is_given_only_if_it_means_the_same_order() {
        let csv = Format::csv_rows(b';', true);
        let keys = vec!["it's:n:r".to_owned(), "-k".to_owned()];
        let order = OrderSpec { keys, ..OrderSpec::new(csv) };
        let line = AdvisedCommand::sort(&journal(order, "/a b", "/o$(x)")).expect("one").line();
        assert_eq!(
            line,
            r"merganser sort --consume --format csv --csv-separator ';' --header --key 'it'\''s:n:r' --key -k '/a b' -o '/o$(x)'"
        );
        let quoted = |quotes| {
            let rows = Format::Csv { separator: b',', header: false, quotes };
            AdvisedCommand::sort(&journal(OrderSpec::new(rows), "/in", "/out"))
        };
        assert_eq!(
            quoted(CsvQuotes::Strict).expect("one").line(),
            "merganser sort --consume --format csv --csv-quotes strict /in -o /out"
        );
        // No option asks for the quotes of older programs.
        assert_eq!(quoted(CsvQuotes::Toggled), None);
        // No command line has the same seed again.
        let lines = OrderSpec::new(Format::Lines { delimiter: 0 });
        let random = OrderSpec { options: "R".to_owned(), salt: 5, ..lines.clone() };
        assert_eq!(AdvisedCommand::sort(&journal(random, "/in", "/out")), None);
        // A command that the parser would refuse is not printed.
        let odd = OrderSpec { options: "n -o /etc/passwd".to_owned(), ..lines };
        assert_eq!(AdvisedCommand::sort(&journal(odd, "/in", "/out")), None);
    }

    /// A shell that runs the line gives the words, whatever the names are.
    #[test]
    fn the_line_is_the_words_for_a_shell() {
        for name in
            ["/plain", "/a b", "/it's", "/$(touch x)`y`", "/a\nb\x1b[2J", "/\u{202e}gpj", "/é"]
        {
            let command = AdvisedCommand::materialize(Path::new(name), Path::new("/out"), false);
            let line = command.expect("absolute").line();
            assert!(!line.chars().any(char::is_control), "{line}");
            assert!(!line.contains('\u{202e}'), "{line}");
            let script = format!("merganser() {{ printf '%s|' \"$@\"; }}; {line}");
            let Ok(said) = process::Command::new("bash").args(["-c", &script]).output() else {
                return;
            };
            assert_eq!(said.stdout, format!("materialize|{name}|-o|/out|").as_bytes());
        }
    }
}
