//! The spellings that GNU `sort` takes and clap does not, rewritten to the ones that clap reads.
//!
//! | typed | read as |
//! |---|---|
//! | `+1.2n -3.4` | `--key=2.3n,4.4`: an old key, counted from 0 |
//! | `--rev`, `--p=1`, `--sort=n` | `--reverse`, `--threads=1`, `--sort=numeric` |
//! | `-t=`, `-nrk 2` | `--field-separator==`, `-n -r --key=2` |
//! | `-y 5` | nothing: an option of an old Solaris |
//! | `-- +1` | the operand `+1` |
//!
//! An abbreviation is looked up among GNU sort's options first, so that a script never depends on
//! which options this program adds. Words that are not understood here are left as they are: clap
//! refuses them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use merganser_sort::key::LETTERS;

/// The long options of GNU sort, in the order in which it names them when one is ambiguous.
const GNU_OPTIONS: [&str; 29] = [
    "ignore-leading-blanks",
    "check",
    "compress-program",
    "debug",
    "dictionary-order",
    "ignore-case",
    "files0-from",
    "general-numeric-sort",
    "ignore-nonprinting",
    "key",
    "merge",
    "month-sort",
    "numeric-sort",
    "human-numeric-sort",
    "version-sort",
    "random-sort",
    "random-source",
    "sort",
    "output",
    "reverse",
    "stable",
    "batch-size",
    "buffer-size",
    "field-separator",
    "temporary-directory",
    "unique",
    "zero-terminated",
    "parallel",
    "help",
];
/// GNU sort has it too, but names it last.
const VERSION: &str = "version";

/// A count of fields or characters that is beyond any line.
const BEYOND: &str = "18446744073709551615";

/// Which of the old spellings count, by the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `+POS1` is a key.
    old_keys: bool,
    /// `+POS1 -POS2` is a key.
    old_pairs: bool,
    /// Options end at the first operand.
    options_first: bool,
    /// But `-o FILE` may follow operands.
    late_output: bool,
}

impl Dialect {
    /// What `_POSIX2_VERSION` and `POSIXLY_CORRECT` ask for, as GNU sort reads them.
    pub(super) fn of_environment() -> Self {
        let version = std::env::var("_POSIX2_VERSION").ok().and_then(|text| text.parse().ok());
        Self::new(version, std::env::var_os("POSIXLY_CORRECT").is_some())
    }

    /// POSIX took old keys away in 2001 and left them to the system in 2008.
    fn new(version: Option<i64>, posixly_correct: bool) -> Self {
        let version = version.unwrap_or(200_809);
        let old_keys = !(200_112..200_809).contains(&version);
        Dialect {
            old_keys,
            old_pairs: old_keys || !posixly_correct,
            options_first: posixly_correct,
            late_output: old_keys,
        }
    }
}

/// Rewrites the words that follow `sort`. `command` says which options there are.
///
/// # Errors
/// A sentence, when an abbreviation is ambiguous or an old key is wrong.
pub(super) fn standard(
    words: Vec<OsString>,
    command: &Command,
    dialect: Dialect,
) -> Result<Vec<OsString>, String> {
    let mut rewriter =
        Rewriter { options: CommandOptions { command }, rest: words.into(), done: Vec::new() };
    let mut operands = Vec::new();
    let mut is_check = false;
    while let Some(word) = rewriter.rest.pop_front() {
        if dialect.options_first && !operands.is_empty() {
            let late = dialect.late_output && !is_check && is_output(&word, &rewriter.rest);
            if !late {
                operands.push(word);
                continue;
            }
        }
        match word.as_bytes() {
            b"--" => operands.extend(rewriter.rest.drain(..)),
            [b'-', b'-', ..] => rewriter.long(&word)?,
            [b'-', letters @ ..] if !letters.is_empty() => {
                is_check |= letters.iter().any(|letter| matches!(letter, b'c' | b'C'));
                rewriter.short(letters)?;
            }
            [b'+', start @ ..] => match rewriter.old_key(start, dialect)? {
                Some(key) => rewriter.done.push(format!("--key={key}").into()),
                None => operands.push(word),
            },
            _ => operands.push(word),
        }
    }
    let Rewriter { mut done, .. } = rewriter;
    if !operands.is_empty() {
        done.push("--".into());
        done.extend(operands);
    }
    Ok(done)
}

/// Whether `word` is `-o` with its value, in it or behind it.
fn is_output(word: &OsStr, rest: &std::collections::VecDeque<OsString>) -> bool {
    match word.as_bytes() {
        b"-o" => !rest.is_empty(),
        word => word.starts_with(b"-o"),
    }
}

struct Rewriter<'a> {
    options: CommandOptions<'a>,
    rest: std::collections::VecDeque<OsString>,
    done: Vec<OsString>,
}

impl Rewriter<'_> {
    /// Takes a word of two dashes, and its value.
    fn long(&mut self, word: &OsStr) -> Result<(), String> {
        let bytes = &word.as_bytes()[2..];
        let (typed, mut value) = match bytes.iter().position(|&byte| byte == b'=') {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned())),
            None => (bytes, None),
        };
        let found = str::from_utf8(typed).ok().map(|typed| self.options.named(typed));
        let Some(name) = found.transpose()?.flatten() else {
            self.done.push(word.to_owned());
            return Ok(());
        };
        let option = self.options.get(&name).expect("found by its name");
        if value.is_none() && takes_value(option) && !option.is_require_equals_set() {
            value = Some(self.value(&format!("--{name}"))?);
        }
        let value = value.map(|value| whole_value(option, value));
        self.done.push(joined(&name, value.as_deref()));
        Ok(())
    }

    /// Takes the letters behind one dash, and the value of the last one.
    fn short(&mut self, letters: &[u8]) -> Result<(), String> {
        for (at, &letter) in letters.iter().enumerate() {
            let behind = &letters[at + 1..];
            if letter == b'y' {
                self.ignored(behind);
                return Ok(());
            }
            match self.options.lettered(letter) {
                Some(option) if takes_value(option) => {
                    let value = match behind {
                        [] => self.value(&format!("-{}", char::from(letter)))?,
                        behind => OsStr::from_bytes(behind).to_owned(),
                    };
                    let name = option.get_long().expect("a short option has a long one");
                    let name = name.to_owned();
                    self.done.push(joined(&name, Some(&value)));
                    return Ok(());
                }
                Some(_) => self.done.push(OsString::from_vec(vec![b'-', letter])),
                None => {
                    let unknown = [b"-", &letters[at..]].concat();
                    self.done.push(OsString::from_vec(unknown));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next word, which is the value of `option` whatever it looks like.
    fn value(&mut self, option: &str) -> Result<OsString, String> {
        self.rest.pop_front().ok_or_else(|| format!("{option}: a value is missing"))
    }

    /// `-y` and its number, which may be left out.
    fn ignored(&mut self, behind: &[u8]) {
        let is_number =
            |word: &OsString| !word.is_empty() && word.as_bytes().iter().all(u8::is_ascii_digit);
        match behind {
            [] if self.rest.is_empty() => self.done.push("-y".into()),
            [] => {
                self.rest.pop_front_if(|word| is_number(word));
            }
            _ => {}
        }
    }

    /// The key that the old key `+START`, and `-END` where it follows, stands for. `None` when the
    /// word is the name of a file.
    fn old_key(&mut self, start: &[u8], dialect: Dialect) -> Result<Option<String>, String> {
        let is_end = |word: &OsString| matches!(word.as_bytes(), [b'-', b'0'..=b'9', ..]);
        let pair = self.rest.front().is_some_and(is_end);
        if !(dialect.old_keys || dialect.old_pairs && pair) {
            return Ok(None);
        }
        let Ok(Position { field, character, letters }) = Position::parse(start, true) else {
            return Ok(None);
        };
        let mut key = format!("{}.{}{letters}", plus_one(&field), plus_one(&character));
        if let Some(word) = self.rest.pop_front_if(|word| is_end(word)) {
            let end = Position::parse(&word.as_bytes()[1..], false)
                .map_err(|reason| format!("'{}': {reason}", word.display()))?;
            let Position { field, character, letters } = end;
            let at = match (&*field, &*character) {
                ("0", "0") => "1".to_owned(),
                (_, "0") => field,
                _ => format!("{}.{character}", plus_one(&field)),
            };
            key.push_str(&format!(",{at}{letters}"));
        }
        Ok(Some(key))
    }
}

/// `F[.C][LETTERS]` of an old key, as decimal numbers without leading zeros.
struct Position {
    field: String,
    character: String,
    letters: String,
}

impl Position {
    /// Parses it; like GNU sort, with white space and a plus sign before the numbers of a start.
    fn parse(text: &[u8], start: bool) -> Result<Self, &'static str> {
        let (field, rest) = number(text, start).ok_or("it must begin with a field number")?;
        let (character, rest) = match rest {
            [b'.', behind @ ..] => number(behind, true).ok_or("a number must follow the '.'")?,
            rest => ("0".to_owned(), rest),
        };
        if !rest.iter().all(|letter| LETTERS.as_bytes().contains(letter)) {
            return Err("an old key is +F[.C] -F[.C], with letters of bdfgiMhnRrV");
        }
        let letters = String::from_utf8_lossy(rest).into_owned();
        Ok(Position { field, character, letters })
    }
}

/// The number at the front of `text`, and what is behind it.
fn number(text: &[u8], signed: bool) -> Option<(String, &[u8])> {
    let text = if signed {
        let text = text.trim_ascii_start();
        text.strip_prefix(b"+").unwrap_or(text)
    } else {
        text
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    let number = match &digits[first..] {
        _ if digits.is_empty() => return None,
        [] => "0".to_owned(),
        digits => String::from_utf8_lossy(digits).into_owned(),
    };
    Some((number, rest))
}

/// The number that is one larger, or any that is beyond a line.
fn plus_one(number: &str) -> String {
    match number.parse::<u64>() {
        Ok(number) if number < u64::MAX => (number + 1).to_string(),
        _ => BEYOND.to_owned(),
    }
}

/// `--NAME`, or `--NAME=VALUE`.
fn joined(name: &str, value: Option<&OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{name}"));
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// A word that GNU sort lets be abbreviated, in full.
fn whole_value(option: &Arg, value: OsString) -> OsString {
    if !["sort", "check"].contains(&option.get_long().unwrap_or_default()) {
        return value;
    }
    let words = option.get_possible_values();
    let begins = |word: &&PossibleValue| {
        let typed = value.to_str().unwrap_or_default();
        word.get_name_and_aliases().any(|name| name.starts_with(typed))
    };
    let mut candidates = words.iter().filter(begins);
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => only.get_name().into(),
        _ => value,
    }
}

/// The options of the command.
struct CommandOptions<'a> {
    command: &'a Command,
}

impl<'a> CommandOptions<'a> {
    fn names(option: &Arg) -> impl Iterator<Item = &str> {
        option.get_long().into_iter().chain(option.get_all_aliases().unwrap_or_default())
    }

    /// The option of this full name.
    fn get(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|option| Self::names(option).any(|known| known == name))
    }

    /// The option of this letter.
    fn lettered(&self, letter: u8) -> Option<&'a Arg> {
        self.command.get_arguments().find(|option| option.get_short() == Some(char::from(letter)))
    }

    /// The full name that `typed` stands for; `None` when no name begins with it.
    fn named(&self, typed: &str) -> Result<Option<String>, String> {
        if self.get(typed).is_some() {
            return Ok(Some(typed.to_owned()));
        }
        let begins = |name: &&str| name.starts_with(typed);
        let mut candidates: Vec<&str> =
            GNU_OPTIONS.into_iter().chain([VERSION]).filter(begins).collect();
        if candidates.is_empty() {
            candidates =
                self.command.get_arguments().flat_map(Self::names).filter(begins).collect();
        }
        match candidates[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.to_owned())),
            _ => {
                let names: Vec<_> = candidates.iter().map(|name| format!("'--{name}'")).collect();
                let names = names.join(" ");
                Err(format!("option '--{typed}' is ambiguous; possibilities: {names}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::CommandLine;

    const TODAY: (Option<i64>, bool) = (None, false);

    fn rewritten((version, posixly): (Option<i64>, bool), words: &str) -> Result<String, String> {
        let command = CommandLine::command();
        let sort = command.find_subcommand("sort").expect("a command");
        let words = words.split(' ').map(OsString::from).collect();
        let done = standard(words, sort, Dialect::new(version, posixly))?;
        Ok(done.join(OsStr::new(" ")).into_string().expect("UTF-8"))
    }

    #[test]
    fn every_option_of_gnu_sort_is_an_option_here() {
        let command = CommandLine::command();
        let sort = command.find_subcommand("sort").expect("a command");
        for name in GNU_OPTIONS.into_iter().chain([VERSION]) {
            assert!(CommandOptions { command: sort }.get(name).is_some(), "--{name}");
        }
    }

    #[test]
    fn old_keys_are_new_keys() {
        for (old, new) in [
            ("+1", "--key=2.1"),
            ("+1 -2", "--key=2.1,2"),
            ("+0 -0", "--key=1.1,1"),
            ("+0 -0.3", "--key=1.1,1.3"),
            ("+1.2nr -3.4b", "--key=2.3nr,4.4b"),
            ("+1 -3.0", "--key=2.1,3"),
            ("+007 -008", "--key=8.1,8"),
            ("f +1 -n", "--key=2.1 -n -- f"),
            ("+18446744073709551616", "--key=18446744073709551615.1"),
            ("+1x f", "-- +1x f"),
            ("+1. f", "-- +1. f"),
            ("+ f", "-- + f"),
            ("-- +1", "-- +1"),
            ("-k +1 +2", "--key=+1 --key=3.1"),
        ] {
            assert_eq!(rewritten(TODAY, old).as_deref(), Ok(new), "{old}");
        }
        for wrong in ["+1 -2x", "+1 -2.", "+1 -2.x"] {
            let sentence = rewritten(TODAY, wrong).expect_err("refused");
            assert!(sentence.starts_with("'-2"), "{sentence}");
        }
    }

    #[test]
    fn the_environment_decides_on_old_spellings() {
        let old = (Some(199_209), true);
        let strict = (Some(200_112), false);
        assert_eq!(rewritten(old, "+1 f").as_deref(), Ok("--key=2.1 -- f"));
        assert_eq!(rewritten(strict, "+1 f").as_deref(), Ok("-- +1 f"));
        assert_eq!(rewritten(strict, "+1 -2 f").as_deref(), Ok("--key=2.1,2 -- f"));
        assert_eq!(rewritten((Some(200_112), true), "+1 -2 f").as_deref(), Ok("-- +1 -2 f"));
        assert_eq!(rewritten((None, true), "-n f -r").as_deref(), Ok("-n -- f -r"));
        assert_eq!(rewritten(old, "f -o g").as_deref(), Ok("--output=g -- f"));
        assert_eq!(rewritten(old, "-c f -o g").as_deref(), Ok("-c -- f -o g"));
        assert_eq!(rewritten((Some(200_112), true), "f -o g").as_deref(), Ok("-- f -o g"));
    }

    #[test]
    fn abbreviations_are_looked_up_among_gnus_options_first() {
        for (short, long) in [
            ("--rev", "--reverse"),
            ("--thr 2", "--threads=2"),
            ("--p=1", "--parallel=1"),
            ("--p 1", "--parallel=1"),
            ("--temp /x", "--temporary-directory=/x"),
            ("--temp-d /x", "--temp-dir=/x"),
            ("--mem 1G", "--memory=1G"),
            ("--compress lz4", "--compress=lz4"),
            ("--ch=q", "--check=quiet"),
            ("--check=silent f", "--check=quiet -- f"),
            ("--ch f", "--check -- f"),
            ("--so n", "--sort=numeric"),
            ("--k=-1", "--key=-1"),
            ("--nothing=5", "--nothing=5"),
            ("--reverse=4", "--reverse=4"),
        ] {
            assert_eq!(rewritten(TODAY, short).as_deref(), Ok(long), "{short}");
        }
        for (typed, names) in [
            ("r", "'--random-sort' '--random-source' '--reverse'"),
            ("ver=2", "'--version-sort' '--version'"),
        ] {
            let name = typed.split('=').next().expect("a name");
            assert_eq!(
                rewritten(TODAY, &format!("--{typed}")),
                Err(format!("option '--{name}' is ambiguous; possibilities: {names}"))
            );
        }
    }

    #[test]
    fn letters_are_taken_apart() {
        for (typed, done) in [
            ("-nrk 2 f", "-n -r --key=2 -- f"),
            ("-t= -k2", "--field-separator== --key=2"),
            ("-uo out", "-u --output=out"),
            ("-rQn", "-r -Qn"),
            ("- -y 5 -y x -y7 -", "-- - x -"),
            ("-y", "-y"),
            ("-T a -Tb", "--temp-dir=a --temp-dir=b"),
        ] {
            assert_eq!(rewritten(TODAY, typed).as_deref(), Ok(done), "{typed}");
        }
    }

    #[test]
    fn a_missing_value_is_not_taken_from_the_operands() {
        for (typed, option) in
            [("f -k", "-k"), ("f --key", "--key"), ("f -nk", "-k"), ("f -o", "-o")]
        {
            let sentence = format!("{option}: a value is missing");
            assert_eq!(rewritten(TODAY, typed), Err(sentence), "{typed}");
        }
    }
}
