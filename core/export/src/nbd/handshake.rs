//! The first phase of a connection: client and server agree on an export and on how to talk.
//!
//! ```text
//!   server: greeting ──► client: flags ──► option ──► replies ──► option ──► ...
//!                                            │ EXPORT_NAME, GO: transmission begins
//!                                            │ ABORT, or a breach of the protocol: the end
//! ```
//!
//! Left out on purpose: TLS (a tunnel or a Unix socket does it), the oldstyle handshake (no client
//! of this century needs it) and extended headers.

use std::io::{self, Read, Write};

use super::wire::{
    BASE_ALLOCATION, BASE_ALLOCATION_ID, GREETING_MAGIC, OPTION_MAGIC, STRING_BYTES_MAX,
    WireFields, greeting, info, option, option_reply as reply, transmission,
};
use super::{BLOCK_BYTES_PREFERRED, REQUEST_BYTES_MAX, wire};

/// The most data that an option may bring, in bytes: several times the longest sensible one. A
/// client that announces more is hung up on.
const OPTION_BYTES_MAX: u32 = 64 << 10;

/// An export as clients see it.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) writable: bool,
}

/// What client and server agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Index of the export.
    pub(super) export: usize,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Whether the client may change it.
    pub(super) writable: bool,
    /// Whether replies are structured.
    pub(super) structured: bool,
    /// Whether the client may ask for the status of blocks.
    pub(super) block_status: bool,
}

/// Talks with a client until both agree; `None` when the client left in good order.
///
/// # Errors
/// A breach of the protocol, or what the stream says.
pub(super) fn negotiate(
    input: &mut impl Read,
    output: &mut impl Write,
    exports: &[Listed],
) -> io::Result<Option<Agreed>> {
    let offered = greeting::FIXED_NEWSTYLE | greeting::NO_ZEROES;
    let mut hello = GREETING_MAGIC.to_be_bytes().to_vec();
    hello.extend(OPTION_MAGIC.to_be_bytes());
    hello.extend(offered.to_be_bytes());
    send(output, &hello)?;
    let flags = u32::from_be_bytes(take(input)?);
    if flags & !u32::from(offered) != 0 {
        return Err(breach("unknown client flags"));
    }
    let zeroes = flags & u32::from(greeting::NO_ZEROES) == 0;
    let mut haggling = Haggling { exports, zeroes, structured: false, contexts_of: None };
    loop {
        if u64::from_be_bytes(take(input)?) != OPTION_MAGIC {
            return Err(breach("no option"));
        }
        let option = u32::from_be_bytes(take(input)?);
        let len = u32::from_be_bytes(take(input)?);
        if len > OPTION_BYTES_MAX {
            return Err(breach("an option too long"));
        }
        let mut data = vec![0; len as usize];
        input.read_exact(&mut data)?;
        let (said, next) = haggling.answer(option, &data)?;
        send(output, &said)?;
        match next {
            HandshakeStep::Option => {}
            HandshakeStep::Transmission(agreed) => return Ok(Some(agreed)),
            HandshakeStep::End => return Ok(None),
        }
    }
}

fn take<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn send(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes)?;
    output.flush()
}

fn breach(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

enum HandshakeStep {
    Option,
    Transmission(Agreed),
    End,
}

/// Why an option is refused: the kind of reply, and words for a human.
type OptionRefusal = (u32, &'static str);

const MALFORMED: OptionRefusal = (reply::ERR_INVALID, "the option's data are malformed");

/// The choices so far.
struct Haggling<'a> {
    exports: &'a [Listed],
    /// Whether the client wants the zeros that follow an old reply.
    zeroes: bool,
    structured: bool,
    /// The export for which metadata contexts were selected last, if any was.
    contexts_of: Option<usize>,
}

impl Haggling<'_> {
    /// All replies to one option, and what comes next.
    fn answer(&mut self, option: u32, data: &[u8]) -> io::Result<(Vec<u8>, HandshakeStep)> {
        let ack = wire::option_reply(option, reply::ACK, &[]);
        let answered = match option {
            option::EXPORT_NAME => {
                // The one option that cannot be refused with words.
                let export = self.find(data).map_err(|(_, why)| breach(why))?;
                return Ok((
                    self.old_reply(export),
                    HandshakeStep::Transmission(self.agreed(export)),
                ));
            }
            option::ABORT => return Ok((ack, HandshakeStep::End)),
            option::LIST => self.list(data),
            option::INFO | option::GO => match self.info(option, data) {
                Ok((said, export)) if option == option::GO => {
                    return Ok((
                        [said, ack].concat(),
                        HandshakeStep::Transmission(self.agreed(export)),
                    ));
                }
                other => other.map(|(said, _)| said),
            },
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                Ok(Vec::new())
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data),
            option::STRUCTURED_REPLY => Err(MALFORMED),
            option::STARTTLS if !data.is_empty() => Err(MALFORMED),
            option::STARTTLS => Err((reply::ERR_UNSUP, "this server has no TLS")),
            _ => Err((reply::ERR_UNSUP, "this server does not know the option")),
        };
        let said = match answered {
            Ok(said) => [said, ack].concat(),
            Err((kind, why)) => wire::option_reply(option, kind, &[why.as_bytes()]),
        };
        Ok((said, HandshakeStep::Option))
    }

    /// The export of this name; the empty name stands for the first.
    fn find(&self, name: &[u8]) -> Result<usize, OptionRefusal> {
        if name.len() > STRING_BYTES_MAX {
            return Err((reply::ERR_TOO_BIG, "the name is too long"));
        }
        if name.is_empty() && !self.exports.is_empty() {
            return Ok(0);
        }
        let named = self.exports.iter().position(|export| export.name.as_bytes() == name);
        named.ok_or((reply::ERR_UNKNOWN, "there is no export of this name"))
    }

    fn agreed(&self, export: usize) -> Agreed {
        Agreed {
            export,
            size: self.exports[export].size,
            writable: self.exports[export].writable,
            structured: self.structured,
            block_status: self.contexts_of == Some(export),
        }
    }

    /// Size and transmission flags.
    fn describe(&self, export: usize) -> [u8; 10] {
        // Nothing is kept for one connection alone, so that a flush on any covers all.
        let mut flags =
            transmission::HAS_FLAGS | transmission::SEND_FLUSH | transmission::CAN_MULTI_CONN;
        flags |= match self.exports[export].writable {
            false => transmission::READ_ONLY,
            true => {
                transmission::SEND_FUA | transmission::SEND_TRIM | transmission::SEND_WRITE_ZEROES
            }
        };
        if self.structured {
            flags |= transmission::SEND_DF;
        }
        let mut out = [0; 10];
        out[..8].copy_from_slice(&self.exports[export].size.to_be_bytes());
        out[8..].copy_from_slice(&flags.to_be_bytes());
        out
    }

    fn old_reply(&self, export: usize) -> Vec<u8> {
        let mut said = self.describe(export).to_vec();
        said.resize(if self.zeroes { 10 + 124 } else { 10 }, 0);
        said
    }

    fn list(&self, data: &[u8]) -> Result<Vec<u8>, OptionRefusal> {
        if !data.is_empty() {
            return Err(MALFORMED);
        }
        let server = |export: &Listed| {
            let len = u32::try_from(export.name.len()).expect("checked: names are short");
            let parts = [&len.to_be_bytes()[..], export.name.as_bytes()];
            wire::option_reply(option::LIST, reply::SERVER, &parts)
        };
        Ok(self.exports.iter().flat_map(server).collect())
    }

    fn info(&self, option: u32, data: &[u8]) -> Result<(Vec<u8>, usize), OptionRefusal> {
        let mut fields = WireFields(data);
        let name = fields.string().ok_or(MALFORMED)?;
        let count = fields.u16().ok_or(MALFORMED)?;
        if fields.0.len() != usize::from(count) * 2 {
            return Err(MALFORMED);
        }
        let export = self.find(name)?;
        let say = |kind: u16, data: &[u8]| {
            wire::option_reply(option, reply::INFO, &[&kind.to_be_bytes(), data])
        };
        let mut said = say(info::EXPORT, &self.describe(export));
        let mut wants_name = false;
        while let Some(wanted) = fields.u16() {
            wants_name |= wanted == info::NAME;
        }
        if wants_name {
            said.extend(say(info::NAME, self.exports[export].name.as_bytes()));
        }
        // Said whether or not it was asked for: who does not know it ignores it.
        let sizes = [1, BLOCK_BYTES_PREFERRED, REQUEST_BYTES_MAX].map(u32::to_be_bytes);
        said.extend(say(info::BLOCK_SIZE, sizes.as_flattened()));
        Ok((said, export))
    }

    /// Lists or selects kinds of metadata.
    fn contexts(&mut self, option: u32, data: &[u8]) -> Result<Vec<u8>, OptionRefusal> {
        let selects = option == option::SET_META_CONTEXT;
        if selects {
            // Gone even when this attempt fails.
            self.contexts_of = None;
        }
        if !self.structured {
            return Err((reply::ERR_INVALID, "structured replies come first"));
        }
        let mut fields = WireFields(data);
        let name = fields.string().ok_or(MALFORMED)?;
        let count = fields.u32().ok_or(MALFORMED)?;
        // Without a query everything is listed, and nothing selected.
        let mut found = count == 0 && !selects;
        for _ in 0..count {
            let query = fields.string().ok_or(MALFORMED)?;
            found |= query == BASE_ALLOCATION.as_bytes() || (query == b"base:" && !selects);
        }
        if !fields.0.is_empty() {
            return Err(MALFORMED);
        }
        let export = self.find(name)?;
        if !found {
            return Ok(Vec::new());
        }
        if selects {
            self.contexts_of = Some(export);
        }
        let id = if selects { BASE_ALLOCATION_ID } else { 0 };
        let parts = [&id.to_be_bytes()[..], BASE_ALLOCATION.as_bytes()];
        Ok(wire::option_reply(option, reply::META_CONTEXT, &parts))
    }
}
