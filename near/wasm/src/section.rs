//! The description that a module carries: the custom section `merganser.ssdlet`, found and read without compiling.
//!
//! ```text
//!   module:  00 61 73 6d  01 00 00 00 │ id, length, content │ id, length, content │ ...
//!   custom:                              00      ..   length of name, name, the rest
//! ```

use merganser_map::ssdlet::{Combine, SsdletError, SsdletOutput, Type};
use merganser_sort::record::{CsvQuotes, Format};
use serde::Deserialize;

use crate::limits::WasmLimits;
use crate::{ABI, SECTION, failed};

/// The longest section that is read, in bytes.
const SECTION_BYTES_MAX: usize = 64 << 10;
/// The longest name of an SSDlet, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The longest record of fixed length, in bytes.
const FIXED_BYTES_MAX: usize = 1 << 20;
/// Memory of a guest that declares none, in bytes.
const MEMORY_BYTES: u64 = 16 << 20;

/// What a module says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name: small letters, digits, `-` and `_`.
    pub name: String,
    /// Its purpose, in one line; may be empty.
    pub about: String,
    /// Its arguments, in one line; may be empty.
    pub arguments: String,
    /// How its input is divided into records.
    pub input: Format,
    /// What it hands out.
    pub output: SsdletOutput,
    /// The linear memory of one worker, at most, in bytes.
    pub memory_bytes: u64,
}

/// The section as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSection {
    abi: i32,
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    arguments: String,
    input: WrittenFormat,
    output: WrittenOutput,
    memory: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenFormat {
    Word(String),
    Full(Format),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum WrittenOutput {
    Keyed { key: Type, value: Type, combine: Combine },
    Ordered { format: WrittenFormat },
}

impl Declared {
    /// Reads what `module` says about itself.
    ///
    /// # Errors
    /// No WebAssembly, no section or more than one, a section that makes no sense, another version.
    pub fn of_module(module: &[u8]) -> Result<Self, SsdletError> {
        let section = find(module).map_err(SsdletError::Failed)?;
        let refused = |detail: String| {
            let detail = crate::plain(detail.as_bytes());
            SsdletError::Failed(format!("the module's section {SECTION}: {detail}"))
        };
        if section.len() > SECTION_BYTES_MAX {
            let len = section.len();
            return Err(refused(format!(
                "{len} bytes are too long; {SECTION_BYTES_MAX} is the most"
            )));
        }
        // The version decides how the rest is read, so it is looked at before the rest.
        #[derive(Deserialize)]
        struct SectionVersion {
            abi: i64,
        }
        let version: SectionVersion =
            serde_json::from_slice(section).map_err(|error| refused(error.to_string()))?;
        if version.abi != i64::from(ABI) {
            let found = version.abi;
            return Err(refused(format!(
                "it is written for version {found} of the interface; this program has version {ABI}"
            )));
        }
        let written: WrittenSection =
            serde_json::from_slice(section).map_err(|error| refused(error.to_string()))?;
        written.meaning().map_err(refused)
    }

    /// The memory of one worker, if `limits` allow it.
    ///
    /// # Errors
    /// When it is more than may be declared.
    pub(crate) fn memory_within(&self, limits: &WasmLimits) -> Result<u64, SsdletError> {
        if self.memory_bytes <= limits.memory_bytes {
            return Ok(self.memory_bytes);
        }
        let (wants, most) = (self.memory_bytes, limits.memory_bytes);
        Err(failed(
            &self.name,
            format_args!("it declares {wants} bytes of memory for a worker; {most} is the most"),
        ))
    }
}

impl WrittenSection {
    fn meaning(self) -> Result<Declared, String> {
        debug_assert_eq!(self.abi, ABI);
        check_name(&self.name)?;
        let output = match self.output {
            WrittenOutput::Keyed { key, value, combine } => {
                if [key, value].contains(&Type::Decimal) {
                    return Err(
                        "output: decimal is for built-in SSDlets; choose text, bytes, i64 or f64"
                            .to_owned(),
                    );
                }
                if combine == Combine::Sum && value != Type::I64 {
                    return Err("output: only values of type i64 can be summed".to_owned());
                }
                SsdletOutput::Keyed { key, value, combine }
            }
            WrittenOutput::Ordered { format } => SsdletOutput::Ordered {
                format: format.meaning().map_err(|e| format!("output: {e}"))?,
            },
        };
        let memory_bytes = self.memory.unwrap_or(MEMORY_BYTES);
        if memory_bytes > 4 << 30 {
            return Err("memory: a guest has 4294967296 bytes at most".to_owned());
        }
        Ok(Declared {
            name: self.name,
            about: crate::plain(self.about.as_bytes()),
            arguments: crate::plain(self.arguments.as_bytes()),
            input: self.input.meaning().map_err(|e| format!("input: {e}"))?,
            output,
            memory_bytes,
        })
    }
}

/// Whether an SSDlet may have this name.
///
/// # Errors
/// If not: the rule.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
        return Err(format!("name: give 1 to {NAME_BYTES_MAX} small letters, digits, '-' or '_'"));
    }
    Ok(())
}

impl WrittenFormat {
    fn meaning(self) -> Result<Format, String> {
        let format = match self {
            // Guests say `csv` for the usual csv, as before there were others.
            WrittenFormat::Full(Format::Csv { separator, header, quotes: CsvQuotes::Toggled }) => {
                Format::csv_rows(separator, header)
            }
            WrittenFormat::Full(format) => format,
            WrittenFormat::Word(word) => match (word.as_str(), word.strip_prefix("fixed:")) {
                ("lines", _) => Format::Lines { delimiter: b'\n' },
                ("csv", _) => Format::csv_rows(b',', false),
                ("keyed", _) => Format::Keyed,
                (_, Some(bytes)) => Format::Fixed {
                    bytes: bytes.parse().map_err(|_| "fixed:N needs a number".to_owned())?,
                },
                _ => {
                    let word: String = word.chars().take(64).collect();
                    return Err(format!(
                        "'{word}' is no format; there are lines, csv, keyed, fixed:N, and objects such as {{\"lines\": {{\"delimiter\": 0}}}}"
                    ));
                }
            },
        };
        match format {
            Format::Fixed { bytes } if bytes == 0 || bytes > FIXED_BYTES_MAX => {
                Err(format!("a record of fixed length has 1 to {FIXED_BYTES_MAX} bytes"))
            }
            Format::Csv { separator: b'"' | b'\n' | b'\r', .. } => {
                Err("fields can't be split by a quote or a line end".to_owned())
            }
            other if !other.is_self_framing() => {
                Err("sequences are no input of a guest; there are lines, csv, keyed and fixed:N"
                    .to_owned())
            }
            format => Ok(format),
        }
    }
}

/// The content of the one section of our name.
fn find(module: &[u8]) -> Result<&[u8], String> {
    const CUSTOM: u8 = 0;
    let mut found = None;
    for section in sections(module)? {
        let ModuleSection { at, id, content } = section?;
        if id != CUSTOM {
            continue;
        }
        let (name, content) = sized(content).ok_or_else(|| damaged(at))?;
        if name == SECTION.as_bytes() && found.replace(content).is_some() {
            return Err(format!("the module has two sections {SECTION}; leave one"));
        }
    }
    found.ok_or_else(|| {
        format!("the module has no section {SECTION}, which says what it takes and gives; docs/near/ssdlets.md shows how to add it")
    })
}

/// A part of a module.
pub(crate) struct ModuleSection<'a> {
    /// Its place.
    pub(crate) at: usize,
    pub(crate) id: u8,
    pub(crate) content: &'a [u8],
}

pub(crate) fn damaged(at: usize) -> String {
    format!("the module is damaged: the section at byte {at} is cut short")
}

/// The sections of a module, in their order.
pub(crate) fn sections(
    module: &[u8],
) -> Result<impl Iterator<Item = Result<ModuleSection<'_>, String>>, String> {
    const MAGIC: &[u8] = b"\0asm";
    const VERSION: &[u8] = &[1, 0, 0, 0];
    let Some(rest) = module.strip_prefix(MAGIC) else {
        return Err("the module is no WebAssembly: it does not begin with \\0asm".to_owned());
    };
    let Some(mut rest) = rest.strip_prefix(VERSION) else {
        return Err(
            "the module is no core WebAssembly of version 1 (a component is not one)".to_owned()
        );
    };
    Ok(std::iter::from_fn(move || {
        let (&id, after) = rest.split_first()?;
        let at = module.len() - rest.len();
        let Some((content, after)) = sized(after) else {
            rest = &[];
            return Some(Err(damaged(at)));
        };
        rest = after;
        Some(Ok(ModuleSection { at, id, content }))
    }))
}

/// A number (LEB128, 32 bits), and the bytes after it.
pub(crate) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[i + 1..]));
        }
    }
    None
}

/// A length and that many bytes; then the rest.
pub(crate) fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = number(bytes)?;
    rest.split_at_checked(usize::try_from(len).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYED: &str = r#""output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}"#;

    fn module(sections: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        let sized = |content: &[u8]| {
            let len = content.len() as u32;
            let leb =
                [len as u8 & 0x7f | 0x80, (len >> 7) as u8 & 0x7f | 0x80, (len >> 14) as u8 & 0x7f];
            [&leb[..], content].concat()
        };
        for (name, content) in sections {
            bytes.push(0);
            bytes.extend(sized(&[&sized(name.as_bytes())[..], content.as_bytes()].concat()));
        }
        bytes
    }

    fn sentence(module: &[u8]) -> String {
        Declared::of_module(module).expect_err("refused").to_string()
    }

    fn of_json(json: &str) -> Result<Declared, SsdletError> {
        Declared::of_module(&module(&[("other", "x"), (SECTION, json)]))
    }

    #[test]
    fn what_is_declared_is_read() {
        let json = format!(
            r#"{{"abi": 1, "name": "words-2", "about": "counts", "input": "lines", {KEYED}}}"#
        );
        let declared = of_json(&json).expect("good");
        assert_eq!(declared.name, "words-2");
        assert_eq!(declared.about, "counts");
        assert_eq!(declared.input, Format::Lines { delimiter: b'\n' });
        assert_eq!(declared.memory_bytes, MEMORY_BYTES);
        let keyed =
            SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
        assert_eq!(declared.output, keyed);
        let most = WasmLimits { memory_bytes: MEMORY_BYTES - 1, ..WasmLimits::default() };
        let told = declared.memory_within(&most).expect_err("too much").to_string();
        assert_eq!(
            told,
            "words-2: it declares 16777216 bytes of memory for a worker; 16777215 is the most"
        );
    }

    #[test]
    fn formats_are_words_or_objects() {
        let input = |input: &str| {
            of_json(&format!(r#"{{"abi": 1, "name": "x", "input": {input}, {KEYED}}}"#))
        };
        for (written, format) in [
            (r#""lines""#, Format::Lines { delimiter: b'\n' }),
            (r#"{"lines": {"delimiter": 0}}"#, Format::Lines { delimiter: 0 }),
            (r#""csv""#, Format::csv_rows(b',', false)),
            (r#"{"csv": {"separator": 59, "header": true}}"#, Format::csv_rows(b';', true)),
            (r#""fixed:100""#, Format::Fixed { bytes: 100 }),
            (r#""keyed""#, Format::Keyed),
        ] {
            assert_eq!(input(written).expect(written).input, format);
        }
        for (written, told) in [
            (r#""xml""#, "'xml' is no format"),
            (r#""l\nes""#, "'l es' is no format"),
            (r#""fixed:0""#, "a record of fixed length has 1 to 1048576 bytes"),
            (r#""fixed:-1""#, "fixed:N needs a number"),
            (r#"{"csv": {"separator": 34, "header": true}}"#, "fields can't be split by a quote"),
            (r#"{"fasta": null}"#, "sequences are no input of a guest"),
            ("7", "data did not match"),
        ] {
            let error = input(written).expect_err(written).to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let good = format!(r#"{{"abi": 1, "name": "x", "input": "lines", {KEYED}}}"#);
        let section = (SECTION, good.as_str());
        for (module, told) in [
            (b"".to_vec(), "the module is no WebAssembly"),
            (b"\0asm\x0d\0\x01\0".to_vec(), "the module is no core WebAssembly"),
            (module(&[]), "the module has no section merganser.ssdlet"),
            (module(&[section, section]), "two sections"),
            ([module(&[section]), b"\x01\x05ab".to_vec()].concat(), "cut short"),
            ([module(&[section]), b"\x01\xff\xff\xff\xff\xff\x01".to_vec()].concat(), "cut short"),
        ] {
            let error = sentence(&module);
            assert!(error.contains(told), "{error}");
        }
        for (from, to, told) in [
            (
                "1,",
                "2,",
                "it is written for version 2 of the interface; this program has version 1",
            ),
            ("\"x\"", "\"X\"", "name: give 1 to 64"),
            ("\"x\"", "\"\"", "name: give 1 to 64"),
            ("\"sum\"", "\"product\"", "unknown variant `product`"),
            ("\"sum\"", "\"pro\\nduct\"", "unknown variant `pro duct`"),
            ("\"i64\"", "\"f64\"", "only values of type i64 can be summed"),
            (
                "\"lines\"",
                "\"lines\", \"memory\": 5000000000",
                "memory: a guest has 4294967296 bytes at most",
            ),
            ("\"lines\"", "\"lines\", \"more\": 1", "unknown field `more`"),
            ("{\"abi\"", "\"abi\"", "line 1"),
        ] {
            let json = good.replacen(from, to, 1);
            let error = of_json(&json).expect_err(&json).to_string();
            assert!(error.starts_with("the module's section merganser.ssdlet: "), "{error}");
            assert!(error.contains(told), "{json}: {error}");
        }
        let long = format!("{good}{}", " ".repeat(SECTION_BYTES_MAX));
        assert!(sentence(&module(&[(SECTION, &long)])).contains("too long"));
    }
}
