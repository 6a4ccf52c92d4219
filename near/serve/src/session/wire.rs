//! The JSON of actions and tickets, for any transport. `merganser-flight` carries it. Unknown fields are errors: a misspelt limit must not be ignored.
//!
//! ```text
//!   DoAction  type    body                                        answer
//!             list    (empty)                                     Listing
//!             open    OpenRequest                                 Opened
//!             set     {"session", "ranges", "run"}                Status
//!             status  {"session"}     cancel  {"session"}         Status
//!             close   {"session"}                                 {}
//!             stat    {"path"}                                    FileStatus
//!             upload  the bytes of an SSDlet                      Uploaded
//!   DoGet     {"session", "offset", "text"}  or  {"view", "records" | "bytes" | "keys"}
//!   DoPut     path descriptor [session, name of the blob]         BlobStatus
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::SessionError;
use super::request::{self, OpenRequest, SessionRange, SetRequest, check_path};
use merganser_map::ssdlet::SsdletDescription;

/// The longest JSON that is read, in bytes.
pub const JSON_BYTES_MAX: usize = 4 << 20;
/// The longest JSON of open. Its arguments may be anything, and take up to 16 times as much memory.
pub const OPEN_BYTES_MAX: usize = 1 << 20;

/// An action with its body.
#[derive(Debug, Clone, PartialEq)]
pub enum Action<'a> {
    /// What the server offers.
    List,
    /// OPEN.
    Open(OpenRequest),
    /// SET.
    Set(SetBody),
    /// How far the run is.
    Status(SessionBody),
    /// End the run.
    Cancel(SessionBody),
    /// CLOSE.
    Close(SessionBody),
    /// The size of a file.
    Stat(PathBody),
    /// Keep an SSDlet.
    Upload(&'a [u8]),
}

/// The names of the actions, and what each does.
pub const ACTIONS: [(&str, &str); 8] = [
    ("list", "SSDlets and limits of this server"),
    (
        "open",
        "open an SSDlet: {\"ssdlet\" or \"sha256\", \"args\", \"memory\", \"threads\", \"fuel_per_byte\", \"time_limit\", \"guest_memory\"}",
    ),
    (
        "set",
        "add input: {\"session\", \"ranges\": [{\"path\" or \"blob\", \"start\", \"length\"}], \"run\"}",
    ),
    ("status", "how far a run is: {\"session\"}"),
    ("cancel", "end a run: {\"session\"}"),
    ("close", "close a session: {\"session\"}"),
    ("stat", "the size of a file, to cut it into ranges: {\"path\"}"),
    ("upload", "verify and keep an SSDlet, whose bytes are the body"),
];

impl<'a> Action<'a> {
    /// The action called `name` with this body.
    ///
    /// # Errors
    /// When no action has this name, or the body is not its JSON.
    pub fn parse(name: &str, body: &'a [u8]) -> Result<Self, SessionError> {
        Ok(match name {
            "list" => Action::List,
            "open" => {
                check_len(name, body, OPEN_BYTES_MAX)?;
                Action::Open(json(name, body)?)
            }
            "set" => Action::Set(json(name, body)?),
            "status" => Action::Status(json(name, body)?),
            "cancel" => Action::Cancel(json(name, body)?),
            "close" => Action::Close(json(name, body)?),
            "stat" => Action::Stat(json(name, body)?),
            "upload" => Action::Upload(body),
            _ => {
                let names: Vec<_> = ACTIONS.iter().map(|(name, _)| *name).collect();
                return Err(SessionError::Invalid(format!(
                    "there is no such action; there are {}",
                    names.join(", ")
                )));
            }
        })
    }
}

/// The body of set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetBody {
    /// The session.
    pub session: String,
    /// The ranges that are added to its next run.
    #[serde(default, deserialize_with = "request::ranges")]
    pub ranges: Vec<SessionRange>,
    /// Whether the run begins.
    #[serde(default)]
    pub run: bool,
}

impl SetBody {
    /// The session's part of it.
    #[must_use]
    pub fn into_request(self) -> (String, SetRequest) {
        (self.session, SetRequest { ranges: self.ranges, run: self.run })
    }
}

/// The body of status, cancel and close.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionBody {
    /// The session.
    pub session: String,
}

/// The body of stat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathBody {
    /// A file below the data folder.
    pub path: String,
}

/// The answer to stat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatus {
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The answer to upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploaded {
    /// The name under which open finds it.
    pub sha256: String,
    /// Its formats and options.
    pub description: SsdletDescription,
}

/// The subject of a DoGet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetTicket {
    /// The rows of a session's run.
    Session(SessionTicket),
    /// A part of a view.
    View(ViewTicket),
}

/// The rows of a session's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionTicket {
    /// The session.
    pub session: String,
    /// The first row.
    #[serde(default)]
    pub offset: u64,
    /// The type of text columns.
    #[serde(default)]
    pub text: TextAs,
}

/// How columns of text cross the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextAs {
    /// As text. Bytes that are not UTF-8 are an error.
    #[default]
    Utf8,
    /// As bytes, whatever they are.
    Binary,
}

/// A part of a view; all of it without a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewTicket {
    /// The view's path below the data folder.
    pub view: String,
    /// From the first record to before the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<(u64, Option<u64>)>,
    /// From the first byte to before the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(u64, Option<u64>)>,
    /// Keys as a user types them, with the escapes of `merganser cat --from-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyRange>,
    /// The names of the columns that are wanted, in this order, if it is a view of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
}

/// A range of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRange {
    /// No key is below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Every key is below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl GetTicket {
    /// The ticket of these bytes.
    ///
    /// # Errors
    /// When they are not the JSON of one, or it names more than one range or a path that can't be.
    pub fn parse(bytes: &[u8]) -> Result<Self, SessionError> {
        /// Which of both it is.
        #[derive(Deserialize)]
        struct TicketKind {
            #[serde(default)]
            view: Option<serde::de::IgnoredAny>,
        }
        let kind: TicketKind = json("ticket", bytes)?;
        if kind.view.is_none() {
            return Ok(GetTicket::Session(json("ticket", bytes)?));
        }
        let ticket: ViewTicket = json("ticket", bytes)?;
        check_path(&ticket.view)?;
        let ViewTicket { records, bytes, keys, .. } = &ticket;
        let ranges = [records.is_some(), bytes.is_some(), keys.is_some()];
        if ranges.into_iter().filter(|given| *given).count() > 1 {
            let told = "a ticket has one of records, bytes and keys";
            return Err(SessionError::Invalid(told.to_owned()));
        }
        Ok(GetTicket::View(ticket))
    }

    /// Its bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        match self {
            GetTicket::Session(ticket) => to_json(ticket),
            GetTicket::View(ticket) => to_json(ticket),
        }
    }
}

/// The JSON of `value`.
///
/// # Panics
/// When it has keys that are no text; the structs here have none.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs are JSON")
}

fn check_len(what: &str, bytes: &[u8], most: usize) -> Result<(), SessionError> {
    if bytes.len() <= most {
        return Ok(());
    }
    Err(SessionError::Invalid(format!("{what}: the JSON has more than {most} bytes")))
}

/// Reads the JSON of `what`.
fn json<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, SessionError> {
    check_len(what, bytes, JSON_BYTES_MAX)?;
    serde_json::from_slice(bytes).map_err(|e| {
        // Parts of a hostile text may be in it.
        let mut why = e.to_string().replace(['\n', '\r'], " ");
        why.truncate(why.floor_char_boundary(256));
        SessionError::Invalid(format!("{what}: not the JSON that is expected: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tickets_and_actions_are_exact() {
        let ticket = |text: &str| GetTicket::parse(text.as_bytes());
        let Ok(GetTicket::Session(first)) = ticket(r#"{"session":"s"}"#) else {
            panic!("a ticket")
        };
        assert_eq!((first.offset, first.text), (0, TextAs::Utf8));
        let Ok(GetTicket::View(view)) = ticket(r#"{"view":"a/b.view","records":[5,null]}"#) else {
            panic!("a ticket")
        };
        assert_eq!(view.records, Some((5, None)));
        for wrong in [
            "",
            "{}",
            "null",
            r#"{"session":"s","ofset":1}"#,
            r#"{"session":"s","offset":-1}"#,
            r#"{"view":"../a"}"#,
            r#"{"view":"a","records":[1,2],"bytes":[1,2]}"#,
            r#"{"view":"a","session":"s"}"#,
            r#"{"view":"a","keys":{"form":"x"}}"#,
        ] {
            ticket(wrong).expect_err(wrong);
        }
        Action::parse("status", br#"{"session":"s","x":1}"#).expect_err("a field too many");
        Action::parse("steal", b"{}").expect_err("no action");
        let long = format!("{{\"ssdlet\":\"x\",\"args\":\"{}\"}}", "x".repeat(OPEN_BYTES_MAX));
        let told = Action::parse("open", long.as_bytes()).expect_err("too long").to_string();
        assert_eq!(told, "open: the JSON has more than 1048576 bytes");
        let deep = "[".repeat(100_000);
        Action::parse("open", format!("{{\"args\":{deep}").as_bytes()).expect_err("too deep");
    }

    proptest! {
        #[test]
        fn a_ticket_reads_back(offset: u64, id in "[a-z0-9]{1,40}", from in ".{0,20}", end: Option<u64>) {
            let tickets = [
                GetTicket::Session(SessionTicket { session: id.clone(), offset, text: TextAs::Binary }),
                GetTicket::View(ViewTicket { view: id.clone(), records: Some((offset, end)), ..ViewTicket::default() }),
                GetTicket::View(ViewTicket {
                    view: id,
                    columns: Some(vec![from.clone()]),
                    keys: Some(KeyRange { from: Some(from), to: None }),
                    ..ViewTicket::default()
                }),
            ];
            for ticket in tickets {
                prop_assert_eq!(GetTicket::parse(&ticket.to_json()).expect("its own"), ticket);
            }
        }
    }
}
