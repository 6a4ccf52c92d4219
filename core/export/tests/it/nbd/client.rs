//! The protocol by hand.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::PATIENCE;

pub(super) const ACK: u32 = 1;
pub(super) const SERVER: u32 = 2;
pub(super) const INFO: u32 = 3;
pub(super) const META_CONTEXT: u32 = 4;
pub(super) const ERR_UNSUP: u32 = 0x8000_0001;
pub(super) const ERR_INVALID: u32 = 0x8000_0003;
pub(super) const ERR_UNKNOWN: u32 = 0x8000_0006;
pub(super) const ERR_TOO_BIG: u32 = 0x8000_0009;

pub(super) const READ: u16 = 0;
pub(super) const DISC: u16 = 2;
pub(super) const FLUSH: u16 = 3;
pub(super) const BLOCK_STATUS: u16 = 7;
pub(super) const DF: u16 = 4;

/// The protocol by hand.
pub(super) struct Client {
    pub stream: UnixStream,
    pub structured: bool,
}

/// A chunk of a structured reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub done: bool,
    pub kind: u16,
    pub cookie: u64,
    pub payload: Vec<u8>,
}

impl Client {
    /// A connection to the server of `socket`, before the handshake.
    pub(super) fn connect(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        Client { stream, structured: false }
    }

    /// A client that is through the handshake of `export`.
    pub(super) fn of_export(socket: &Path, export: &[u8], structured: bool) -> Client {
        let mut client = Client::connect(socket);
        client.greet(3);
        if structured {
            client.option(8, b"");
            assert_eq!(client.option_reply(), (8, ACK, Vec::new()));
            client.structured = true;
        }
        client.go(export).expect("there");
        client
    }

    pub(super) fn send(&mut self, parts: &[&[u8]]) {
        self.stream.write_all(&parts.concat()).expect("the server listens");
    }

    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.stream.read_exact(&mut out).expect("the server answers");
        out
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("2"))
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("4"))
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().expect("8"))
    }

    pub(super) fn greet(&mut self, flags: u32) {
        assert_eq!(self.take(18), b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&[&flags.to_be_bytes()]);
    }

    pub(super) fn option(&mut self, option: u32, data: &[u8]) {
        let len = (data.len() as u32).to_be_bytes();
        self.send(&[b"IHAVEOPT", &option.to_be_bytes(), &len, data]);
    }

    /// Option, kind and data of one reply.
    pub(super) fn option_reply(&mut self) -> (u32, u32, Vec<u8>) {
        assert_eq!(self.take(8), b"\x00\x03\xe8\x89\x04\x55\x65\xa9");
        let (option, kind, len) = (self.u32(), self.u32(), self.u32());
        (option, kind, self.take(len as usize))
    }

    /// Kind and data of all replies to an option up to the last one.
    pub(super) fn ask(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.option(option, data);
        let mut replies = Vec::new();
        loop {
            let (to, kind, data) = self.option_reply();
            assert_eq!(to, option);
            replies.push((kind, data));
            if kind == ACK || kind >= 1 << 31 {
                return replies;
            }
        }
    }

    /// The kind of the one reply to an option that is refused.
    pub(super) fn refusal(&mut self, option: u32, data: &[u8]) -> u32 {
        let replies = self.ask(option, data);
        assert!(replies.len() == 1 && replies[0].0 != ACK, "{replies:?}");
        assert!(!replies[0].1.is_empty(), "no words");
        replies[0].0
    }

    pub(super) fn go(&mut self, name: &[u8]) -> Result<(), u32> {
        let replies = self.ask(7, &export_request(name, &[]));
        match replies.last().expect("some").0 {
            ACK => Ok(()),
            error => Err(error),
        }
    }

    pub(super) fn request(&mut self, command: u16, flags: u16, cookie: u64, offset: u64, len: u32) {
        self.send(&[&request(command, flags, cookie, offset, len)]);
    }

    /// Error and cookie of a simple reply.
    pub(super) fn simple(&mut self) -> (u32, u64) {
        assert_eq!(self.take(4), b"\x67\x44\x66\x98");
        (self.u32(), self.u64())
    }

    pub(super) fn chunk(&mut self) -> Chunk {
        assert_eq!(self.take(4), b"\x66\x8e\x33\xef");
        let (flags, kind, cookie, len) = (self.u16(), self.u16(), self.u64(), self.u32());
        Chunk { done: flags == 1, kind, cookie, payload: self.take(len as usize) }
    }

    /// The error of the reply to a command that brings no data, 0 for none.
    pub(super) fn status(&mut self, cookie: u64) -> u32 {
        if !self.structured {
            let (error, of) = self.simple();
            assert_eq!(of, cookie);
            return error;
        }
        let chunk = self.chunk();
        assert!(chunk.done && chunk.cookie == cookie, "{chunk:?}");
        match chunk.kind {
            0 => 0,
            _ => u32::from_be_bytes(chunk.payload[..4].try_into().expect("4")),
        }
    }

    /// Reads, alone on the connection; the error where there is one.
    pub(super) fn read(&mut self, offset: u64, len: usize) -> Result<Vec<u8>, u32> {
        let cookie = offset ^ 0xabcd_0000_0000;
        self.request(READ, 0, cookie, offset, len as u32);
        if !self.structured {
            let (error, of) = self.simple();
            assert_eq!(of, cookie);
            return if error == 0 { Ok(self.take(len)) } else { Err(error) };
        }
        let mut out = vec![0; len];
        let mut filled = 0;
        let mut failed = None;
        loop {
            let Chunk { done, kind, cookie: of, payload } = self.chunk();
            assert_eq!(of, cookie);
            match kind {
                0 => assert!(done),
                1 => {
                    let at = u64::from_be_bytes(payload[..8].try_into().expect("8")) - offset;
                    out[at as usize..][..payload.len() - 8].copy_from_slice(&payload[8..]);
                    filled += payload.len() - 8;
                }
                0x8001 | 0x8002 => {
                    failed = Some(u32::from_be_bytes(payload[..4].try_into().expect("4")));
                }
                _ => panic!("chunk of kind {kind}"),
            }
            if done {
                break;
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                assert_eq!(filled, len);
                Ok(out)
            }
        }
    }

    /// Waits until the server hangs up; what it still sent is dropped.
    pub(super) fn is_hung_up_on(&mut self) {
        let ended = io::copy(&mut self.stream, &mut io::sink());
        let reset = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionReset;
        assert!(ended.as_ref().is_ok() || ended.as_ref().is_err_and(reset), "{ended:?}");
    }
}

pub(super) fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut out = b"\x25\x60\x95\x13".to_vec();
    out.extend(flags.to_be_bytes());
    out.extend(command.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
    out
}

/// The data of INFO and GO.
pub(super) fn export_request(name: &[u8], infos: &[u16]) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend(name);
    out.extend((infos.len() as u16).to_be_bytes());
    out.extend(infos.iter().flat_map(|i| i.to_be_bytes()));
    out
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub(super) fn context_request(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let string = |s: &[u8]| [&(s.len() as u32).to_be_bytes(), s].concat();
    let queried: Vec<_> = queries.iter().flat_map(|q| string(q)).collect();
    [string(name), (queries.len() as u32).to_be_bytes().to_vec(), queried].concat()
}
