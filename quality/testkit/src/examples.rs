//! The command lines in help texts.

/// Spaces between a command and a remark about it.
const BEFORE_REMARK: &str = "   ";

/// A help text's command lines of this program, as lists of words.
#[must_use]
pub fn examples(help: &str) -> Vec<Vec<String>> {
    let Some((_, lines)) = help.split_once("Examples:\n") else { return Vec::new() };
    let mut joined: Vec<String> = Vec::new();
    for line in lines.lines().take_while(|line| line.starts_with("  ")) {
        match joined.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push_str(line.trim());
            }
            _ => joined.push(line.trim().to_owned()),
        }
    }
    let lines = joined.iter().filter(|line| !line.starts_with('#'));
    let ours = |command: &Vec<String>| {
        command.first().is_some_and(|name| name == "merganser" || name == "./sort")
    };
    lines.flat_map(|line| commands(line)).filter(ours).collect()
}

/// The commands of a line as a shell would split it, without redirections. A remark may follow them.
#[must_use]
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let (mut quote, mut redirected) = (None, false);
    for (at, c) in line.char_indices() {
        if quote == Some(c) {
            quote = None;
        } else if quote.is_some() {
            word.get_or_insert_default().push(c);
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
            word.get_or_insert_default();
        } else if matches!(c, ' ' | '|' | '&' | ';' | '>') {
            if let Some(word) = word.take()
                && !std::mem::take(&mut redirected)
            {
                commands.last_mut().expect("one at least").push(word);
            }
            match c {
                ' ' if line[at..].starts_with(BEFORE_REMARK) => break,
                ' ' => {}
                '>' => redirected = true,
                _ => commands.push(Vec::new()),
            }
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    let last = commands.last_mut().expect("one at least");
    last.extend(word.filter(|_| !redirected));
    commands
}

/// All command lines of this program in the help texts of a command and of those below it.
#[cfg(feature = "programs")]
#[must_use]
pub fn all(command: &clap::Command) -> Vec<Vec<String>> {
    let mut texts = Vec::new();
    helps(command, &mut texts);
    texts.iter().flat_map(|text| examples(text)).collect()
}

/// How many examples of a help there are, and how many of them name no file that is missing.
#[cfg(feature = "programs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenExamples {
    /// All of them.
    pub seen: usize,
    /// Those whose settings could be made without files.
    pub without_files: usize,
}

/// Gives every example in the help of `command` to `taken`, but for those of other programs.
///
/// # Panics
/// If one is refused, except for a file that is not there.
#[cfg(feature = "programs")]
#[must_use]
pub fn check(
    command: &clap::Command,
    taken: impl Fn(&[String]) -> Result<(), String>,
) -> TakenExamples {
    let mut count = TakenExamples { seen: 0, without_files: 0 };
    // An example may continue with a command of another program, or leave the command out.
    let own = |words: &Vec<String>| {
        words
            .get(1)
            .is_none_or(|word| command.find_subcommand(word).is_some() || !is_other_command(word))
    };
    for words in all(command).into_iter().filter(own) {
        count.seen += 1;
        match taken(&words) {
            Ok(()) => count.without_files += 1,
            // Its settings are made from files: patterns of grep's, databases, an input.
            Err(why) if why.contains("No such file or directory") => {}
            Err(why) => panic!("{}: {why}", words.join(" ")),
        }
    }
    count
}

/// Whether a word can be the command of another program: it is no option and no file.
#[cfg(feature = "programs")]
fn is_other_command(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// All help texts of a command and of those below it.
#[cfg(feature = "programs")]
fn helps(command: &clap::Command, texts: &mut Vec<String>) {
    texts.extend(command.get_after_help().map(ToString::to_string));
    for command in command.get_subcommands() {
        helps(command, texts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_does() {
        let words =
            |line| commands(line).into_iter().map(|words| words.join("_")).collect::<Vec<_>>();
        assert_eq!(words("a -x 'b c' d:'e f' > g   remark"), ["a_-x_b c_d:e f"]);
        assert_eq!(words("a -o - | b - && c &"), ["a_-o_-", "b_-", "", "c", ""]);
        let help = "About\n\nExamples:\n  # one\n  merganser a \\\n      --b c   d\n  fio x\n\nMore: merganser";
        assert_eq!(examples(help), [["merganser", "a", "--b", "c"]]);
    }
}
