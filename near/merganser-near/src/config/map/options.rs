//! The options of SSDlets, each as an argument: its name in JSON, and its value.

use std::ffi::OsString;
use std::path::PathBuf;

use merganser_map::ssdlet::builtin::{self, Builtin};
use merganser_shell::config::list;
use merganser_shell::failure::Failure;
use merganser_shell::shown;
use serde_json::{Value, json};

use crate::args::ProgramArgs;

/// An option that was typed, as an argument of SSDlets.
#[derive(Debug)]
pub(super) struct TypedOption {
    /// The option.
    pub flag: &'static str,
    /// The argument's name in JSON.
    pub argument: &'static str,
    /// Its value.
    pub value: Value,
}

impl TypedOption {
    /// Whether it is an option of `builtin`. Two arguments have one name and two meanings: match counts
    /// records (a boolean), and for sample it is the number of records.
    pub(super) fn is_of(&self, builtin: &Builtin) -> bool {
        let known = builtin.arguments.iter().any(|known| known.name == self.argument);
        known
            && match self.flag {
                "--count" => builtin.name == "match",
                "--records" => builtin.name == "sample",
                _ => true,
            }
    }
}

/// The options that were typed, but for `--args` and `--raw`.
///
/// # Errors
/// Keys that can't be read, and texts that are no conditions.
pub(super) fn options(typed: ProgramArgs) -> Result<Vec<TypedOption>, Failure> {
    let ProgramArgs {
        args: _,
        raw: _,
        keys,
        key,
        regex,
        ignore_case,
        invert,
        count,
        text,
        rule,
        length,
        document,
        first,
        of,
        column,
        width,
        start,
        invalid,
        columns,
        conditions,
        fraction,
        records,
        seed,
    } = typed;
    let key_flag = if keys.is_empty() { "--key" } else { "--keys" };
    let keys = all_keys(&keys, &key)?;
    let set = |given: bool| given.then_some(Value::from(true));
    let columns = columns.map(|columns| columns.split(',').map(column_of).collect::<Vec<_>>());
    let found = [
        (key_flag, "keys", keys.map(Value::from)),
        ("--regex", "regex", regex.map(Value::from)),
        ("--ignore-case", "ignore_case", set(ignore_case)),
        ("--invert", "invert", set(invert)),
        ("--count", "count", set(count)),
        ("--text", "text", text.map(Value::from)),
        ("--rule", "words", rule.map(Value::from)),
        ("--length", "n", length.map(Value::from)),
        ("--document", "document", document.map(Value::from)),
        ("--first", "first", first.map(Value::from)),
        ("--of", "of", of.map(Value::from)),
        ("--column", "column", column.as_deref().map(column_of)),
        ("--width", "width", digits("--width", width.as_deref())?),
        ("--start", "start", digits("--start", start.as_deref())?),
        ("--invalid", "invalid", invalid.map(Value::from)),
        ("--columns", "columns", columns.map(Value::from)),
        ("--where", "where", condition(&conditions)?),
        ("--fraction", "fraction", number("--fraction", fraction)?),
        ("--records", "count", records.map(|count| Value::from(count.0))),
        ("--seed", "seed", seed.map(Value::from)),
    ];
    let given = |(flag, argument, value): (&'static str, &'static str, Option<Value>)| {
        value.map(|value| TypedOption { flag, argument, value })
    };
    Ok(found.into_iter().filter_map(given).collect())
}

/// JSON has finite numbers only.
fn number(flag: &str, typed: Option<f64>) -> Result<Option<Value>, Failure> {
    match typed {
        Some(number) if !number.is_finite() => Err(format!("{flag}: {number} is no number").into()),
        typed => Ok(typed.map(Value::from)),
    }
}

/// A number of any length.
fn digits(flag: &str, typed: Option<&str>) -> Result<Option<Value>, Failure> {
    let Some(typed) = typed else { return Ok(None) };
    match builtin::number_argument(typed) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("{flag} '{typed}': give a number, such as 0.5").into()),
    }
}

/// Reads the JSON of `flag`.
///
/// # Errors
/// A text that is no JSON, and a number that a reader of JSON would round.
pub(super) fn json(flag: &str, typed: &str) -> Result<Value, Failure> {
    if let Some(digits) = builtin::rounded_number(typed) {
        return Err(format!(
            "{flag}: JSON would round {digits}; write {{\"number\": \"{digits}\"}}, or use the options"
        )
        .into());
    }
    serde_json::from_str(typed).map_err(|error| format!("{flag}: {error}").into())
}

/// A column: a number from 1, or a name.
fn column_of(typed: &str) -> Value {
    typed.parse::<u64>().map_or_else(|_| Value::from(typed), Value::from)
}

/// The condition of all `--where`: `COLUMN OP VALUE`, or a condition in JSON.
fn condition(typed: &[String]) -> Result<Option<Value>, Failure> {
    let conditions =
        typed.iter().map(|typed| one_condition(typed)).collect::<Result<Vec<_>, _>>()?;
    Ok(match conditions.len() {
        0 => None,
        1 => conditions.into_iter().next(),
        _ => Some(json!({ "all": conditions })),
    })
}

/// Longer operators come first, so that `<=` is not `<`.
const SIGNS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];
const WORDS: [&str; 3] = [" contains ", " starts ", " ends "];

/// The place and the operator that begins leftmost; of those that begin there, the longest.
fn operator(typed: &str) -> Option<(usize, &'static str)> {
    let all = SIGNS.iter().chain(&WORDS).enumerate();
    let found = all.filter_map(|(order, sign)| Some((typed.find(sign)?, order, *sign))).min();
    found.map(|(at, _, sign)| (at, sign))
}

fn one_condition(typed: &str) -> Result<Value, Failure> {
    if typed.trim_start().starts_with('{') {
        return json("--where", typed);
    }
    let refused = |why: &str| Err(format!("--where '{typed}': {why}").into());
    let parts = operator(typed).map(|(at, sign)| (&typed[..at], sign, &typed[at + sign.len()..]));
    let (column, sign, value) = match parts {
        Some((column, sign, value)) if !column.trim().is_empty() && !value.trim().is_empty() => {
            (column.trim(), sign, value.trim())
        }
        _ => {
            return refused(
                "write COLUMN OP VALUE, such as 'amount >= 100'; OP is one of = != < <= > >= contains starts ends",
            );
        }
    };
    let is_sign = !WORDS.contains(&sign);
    let value = match value.strip_prefix('"') {
        Some(text) => match text.strip_suffix('"') {
            Some(text) => Value::from(text),
            None => return refused("the value begins with a quote, but does not end with one"),
        },
        // Of `>> 10`, `== 10` and `<> 10` this is left.
        None if is_sign && value.starts_with(['=', '<', '>', '!', '~']) => {
            return refused(
                "there is no such operator; use one of = != < <= > >=, or put the value in double quotes",
            );
        }
        None if joins_conditions(value) => {
            return refused(
                "this is more than one condition; give each its own --where, or put the value in double quotes",
            );
        }
        None if is_sign => builtin::number_argument(value).unwrap_or_else(|| Value::from(value)),
        None => Value::from(value),
    };
    Ok(json!({ "column": column_of(column), "op": sign.trim(), "value": value }))
}

/// Whether an unquoted value continues with another condition.
fn joins_conditions(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    [" and ", " or ", "&&", "||"].iter().any(|joint| {
        lower.match_indices(joint).any(|(at, _)| {
            let rest = &lower[at + joint.len()..];
            operator(rest).is_some_and(|(at, _)| !rest[..at].trim().is_empty())
        })
    })
}

/// The lines of all `files`, then the `texts`; `None` where neither is given.
fn all_keys(files: &[PathBuf], texts: &[OsString]) -> Result<Option<Vec<String>>, Failure> {
    if files.is_empty() && texts.is_empty() {
        return Ok(None);
    }
    let mut keys = Vec::new();
    for path in files {
        let shown = shown::name(path);
        let text = list::read_text(path, "--keys")?;
        for (at, line) in list::lines(&text).enumerate() {
            let number = at + 1;
            match std::str::from_utf8(line) {
                Ok("") => {
                    let why = "is empty, and every record has the empty text; remove it";
                    return Err(format!("--keys {shown}: line {number} {why}").into());
                }
                Ok(key) => keys.push(key.to_owned()),
                Err(_) => {
                    let why = r"is not UTF-8; search for other bytes with --regex '(?-u)\xHH'";
                    return Err(format!("--keys {shown}: line {number} {why}").into());
                }
            }
        }
    }
    for text in texts {
        match text.to_str() {
            Some("") => {
                return Err("--key: every record has the empty text".to_owned().into());
            }
            Some(key) => keys.push(key.to_owned()),
            None => return Err(format!("--key '{}': not UTF-8", text.display()).into()),
        }
    }
    Ok(Some(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_column_an_operator_and_a_value() {
        let table = [
            ("amount > 100", json!({ "column": "amount", "op": ">", "value": 100 })),
            ("amount>=1.5", json!({ "column": "amount", "op": ">=", "value": 1.5 })),
            ("2 != x", json!({ "column": 2, "op": "!=", "value": "x" })),
            ("a b = c d", json!({ "column": "a b", "op": "=", "value": "c d" })),
            ("zip = \"01234\"", json!({ "column": "zip", "op": "=", "value": "01234" })),
            ("name starts 12", json!({ "column": "name", "op": "starts", "value": "12" })),
            ("name contains a=b", json!({ "column": "name", "op": "contains", "value": "a=b" })),
            ("{\"not\": 1}", json!({ "not": 1 })),
            (
                "id = 1234567890123456789",
                json!({ "column": "id", "op": "=", "value": 1_234_567_890_123_456_789_u64 }),
            ),
            (
                "x < 0.12345678901234567891",
                json!({ "column": "x", "op": "<", "value": { "number": "0.12345678901234567891" } }),
            ),
            ("x < inf", json!({ "column": "x", "op": "<", "value": { "number": "inf" } })),
            ("x = nan", json!({ "column": "x", "op": "=", "value": "nan" })),
            ("x = \">> 1\"", json!({ "column": "x", "op": "=", "value": ">> 1" })),
            ("x contains =", json!({ "column": "x", "op": "contains", "value": "=" })),
            ("x = \"\"", json!({ "column": "x", "op": "=", "value": "" })),
            ("x = rock and roll", json!({ "column": "x", "op": "=", "value": "rock and roll" })),
            ("x = 3.5\"", json!({ "column": "x", "op": "=", "value": "3.5\"" })),
        ];
        for (typed, meant) in table {
            assert_eq!(one_condition(typed).expect(typed), meant, "{typed}");
        }
        for (typed, told) in [
            ("", "COLUMN OP VALUE"),
            ("amount", "COLUMN OP VALUE"),
            ("= 3", "COLUMN OP VALUE"),
            ("amount =", "COLUMN OP VALUE"),
            ("amount is 3", "COLUMN OP VALUE"),
            ("amount CONTAINS 3", "COLUMN OP VALUE"),
            ("amount contains ", "COLUMN OP VALUE"),
            ("amount >> 10", "no such operator"),
            ("amount > > 10", "no such operator"),
            ("amount == 10", "no such operator"),
            ("amount = = 10", "no such operator"),
            ("amount === 10", "no such operator"),
            ("amount <> 10", "no such operator"),
            ("amount => 10", "no such operator"),
            ("amount =< 10", "no such operator"),
            ("amount =! 10", "no such operator"),
            ("amount =~ 10", "no such operator"),
            ("city = \"Ulm", "quote"),
            ("city = \"Ulm\" or city = \"Bonn", "quote"),
            ("amount > 10 and city = Ulm", "more than one condition"),
            ("amount > 10 AND amount < 20", "more than one condition"),
            ("city = Ulm || city = Bonn", "more than one condition"),
            ("name contains x or name starts y", "more than one condition"),
            ("{", "EOF"),
            ("{\"column\": 1, \"op\": \"=\", \"value\": 12345678901234567890123}", "would round"),
        ] {
            let refused = one_condition(typed).expect_err(typed);
            let said = refused.sentence().expect("a sentence");
            assert!(said.starts_with("--where") && said.contains(told), "{typed}: {said}");
        }
        let both = condition(&["a = 1".to_owned(), "b = 2".to_owned()]).expect("two");
        assert_eq!(both.expect("some")["all"][1]["column"], json!("b"));
    }

    #[test]
    fn keys_come_from_files_and_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("keys");
        std::fs::write(&file, "one\r\ntwo words\n").expect("written");
        for text in ["one\r\ntwo words\n", "\u{feff}one\ntwo words", "\u{feff}one\r\ntwo words\r\n"]
        {
            std::fs::write(&file, text).expect("written");
            let keys = all_keys(std::slice::from_ref(&file), &["three".into()]).expect("readable");
            assert_eq!(keys.expect("some"), ["one", "two words", "three"], "{text:?}");
        }
        for (bytes, line) in [
            (&b"a\n\nb\n"[..], "line 2 is empty"),
            (b"a\n\xff", "line 2 is not UTF-8"),
            (b"\xef\xbb\xbf\n", "line 1 is empty"),
            (b"\xff\xfea\0\n\0", "UTF-16"),
            (b"\xfe\xff\0a\0\n", "UTF-16"),
        ] {
            std::fs::write(&file, bytes).expect("written");
            let refused = all_keys(std::slice::from_ref(&file), &[]).expect_err("refused");
            assert!(refused.sentence().is_some_and(|said| said.contains(line)), "{refused:?}");
        }
    }
}
