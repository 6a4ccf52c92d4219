//! Values out of a JSON object, with errors that name the argument.

use merganser_sort::record::{CsvQuotes, Format};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Builtin;
use crate::ssdlet::{FREE_BYTES, Loan, MemoryLender, SsdletError};

/// What quotes mean in the csv that an SSDlet reads.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Quotes {
    Lazy,
    Strict,
}

/// The arguments of one SSDlet that were not taken yet.
pub(super) struct Arguments<'a> {
    ssdlet: &'static str,
    values: Map<String, Value>,
    lender: &'a dyn MemoryLender,
}

impl<'a> Arguments<'a> {
    /// Refuses members that `builtin` does not have.
    pub(super) fn new(
        builtin: &Builtin,
        args: &Value,
        lender: &'a dyn MemoryLender,
    ) -> Result<Self, SsdletError> {
        let values = match args {
            Value::Null => Map::new(),
            Value::Object(values) => values.clone(),
            _ => {
                let detail = "the arguments are not a JSON object; write {\"name\": value}";
                return Err(SsdletError::Args {
                    ssdlet: builtin.name.to_owned(),
                    detail: detail.to_owned(),
                });
            }
        };
        let names: Vec<_> = builtin.arguments.iter().map(|argument| argument.name).collect();
        let unknown = values.keys().find(|name| !names.contains(&name.as_str()));
        if let Some(unknown) = unknown {
            let detail =
                format!("there is no argument {unknown:?}; there are {}", names.join(", "));
            return Err(SsdletError::Args { ssdlet: builtin.name.to_owned(), detail });
        }
        Ok(Arguments { ssdlet: builtin.name, values, lender })
    }

    /// Memory for what is made of `argument`: `bytes` at most, until it is made.
    pub(super) fn memory(&self, argument: &str, bytes: u64) -> Result<Loan, SsdletError> {
        let most = self.lender.most_bytes();
        match bytes {
            0..=FREE_BYTES => Ok(Loan::free()),
            _ if bytes <= most => self.lender.lend(bytes),
            _ => Err(self.fault(
                argument,
                format_args!(
                    "to open it may take {bytes} bytes of memory, and there are {most}; make it shorter"
                ),
            )),
        }
    }

    /// The memory that the SSDlet is opened in, in bytes.
    pub(super) fn memory_most(&self) -> u64 {
        self.lender.most_bytes()
    }

    /// An error about `argument`.
    pub(super) fn fault(&self, argument: &str, detail: impl std::fmt::Display) -> SsdletError {
        SsdletError::Argument {
            ssdlet: self.ssdlet.to_owned(),
            argument: argument.to_owned(),
            detail: detail.to_string(),
        }
    }

    /// Takes `argument`; `null` is as good as none.
    pub(super) fn take<T: DeserializeOwned>(
        &mut self,
        argument: &str,
    ) -> Result<Option<T>, SsdletError> {
        match self.values.remove(argument) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                serde_json::from_value(value).map(Some).map_err(|error| self.fault(argument, error))
            }
        }
    }

    /// Whether `argument` is there.
    pub(super) fn has(&self, argument: &str) -> bool {
        self.values.get(argument).is_some_and(|value| !value.is_null())
    }

    /// Takes one byte.
    pub(super) fn byte(&mut self, argument: &str, default: u8) -> Result<u8, SsdletError> {
        match self.take::<String>(argument)?.as_deref().map(str::as_bytes) {
            None => Ok(default),
            Some([byte]) => Ok(*byte),
            Some(_) => Err(self.fault(argument, "give one byte, for example \",\"")),
        }
    }

    /// Takes the byte that ends a record, as a text or as a number: some bytes are no text.
    pub(super) fn delimiter(&mut self) -> Result<u8, SsdletError> {
        match self.values.get("delimiter").and_then(Value::as_u64).map(u8::try_from) {
            None => self.byte("delimiter", b'\n'),
            Some(Ok(byte)) => {
                self.values.remove("delimiter");
                Ok(byte)
            }
            Some(Err(_)) => Err(self.fault("delimiter", "the number of a byte is from 0 to 255")),
        }
    }

    /// Takes the record format of an SSDlet for lines only.
    pub(super) fn lines(&mut self) -> Result<Format, SsdletError> {
        Ok(Format::Lines { delimiter: self.delimiter()? })
    }

    /// Takes the record format of an SSDlet for csv only.
    pub(super) fn csv(&mut self) -> Result<Format, SsdletError> {
        let separator = self.byte("separator", b',')?;
        if matches!(separator, b'"' | b'\n' | b'\r') {
            return Err(self.fault("separator", "neither a quote nor a line end separates fields"));
        }
        let header = self.take("header")?.unwrap_or(false);
        let quotes: Option<Quotes> = self.take("quotes")?;
        let quotes = match quotes {
            None | Some(Quotes::Lazy) => CsvQuotes::Lazy,
            Some(Quotes::Strict) => CsvQuotes::Strict,
        };
        Ok(Format::Csv { separator, header, quotes })
    }

    /// Takes the record format of an SSDlet for records of any kind.
    pub(super) fn records(&mut self) -> Result<Format, SsdletError> {
        let name = self.take::<String>("format")?.unwrap_or_else(|| "lines".to_owned());
        let format = match name.as_str() {
            "lines" => self.lines(),
            "csv" => self.csv(),
            "keyed" => Ok(Format::Keyed),
            other => match other.strip_prefix("fixed:").map(str::parse) {
                Some(Ok(bytes)) if bytes > 0 => Ok(Format::Fixed { bytes }),
                _ => {
                    let detail = format!("{other:?} is none of lines, csv, keyed and fixed:BYTES");
                    Err(self.fault("format", detail))
                }
            },
        }?;
        let unused =
            ["delimiter", "separator", "header", "quotes"].into_iter().find(|name| self.has(name));
        match unused {
            Some(unused) => Err(self.fault(unused, format!("records of format {name} have none"))),
            None => Ok(format),
        }
    }
}
