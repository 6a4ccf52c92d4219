//! Any bytes as a log of smartFAM, as a command to a device's SSDlets, and as a status: an error, or a
//! message that is written as it was read.

use merganser_map::frame::{self, RecordFrame};
use merganser_inside::isc::command::SessionCommand;
use merganser_inside::isc::{status};
use merganser_serve::smart_fam::{BODY_MAX, CallAnswer, CallRequest, MAGIC};

/// A frame with the right checksum around `body`.
fn framed(magic: [u8; 4], id: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = [&magic[..], &(body.len() as u32).to_le_bytes(), &id.to_le_bytes()].concat();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), body);
    bytes.extend(crc.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<(u64, &[u8])>(bytes) else { return };
    let (id, body) = input;
    let mut log = body;
    while let Ok(Some((_, len))) = RecordFrame::decode(MAGIC, BODY_MAX, log) {
        log = &log[len..];
    }
    let whole = framed(MAGIC, id, body);
    for cut in [0, 1, 19, 20, whole.len().saturating_sub(1)] {
        let part = &whole[..cut.min(whole.len())];
        assert!(
            part.len() == whole.len()
                || matches!(RecordFrame::decode(MAGIC, BODY_MAX, part), Ok(None))
        );
    }
    let (found, len) = RecordFrame::decode(MAGIC, BODY_MAX, &whole).unwrap().unwrap();
    assert_eq!((found.id, found.body, len), (id, body, whole.len()));
    if let Ok(request) = found.value::<CallRequest>() {
        let again = frame::encode(MAGIC, id, &request, BODY_MAX * 8).unwrap();
        let (again, _) = RecordFrame::decode(MAGIC, BODY_MAX * 8, &again).unwrap().unwrap();
        assert_eq!(again.value::<CallRequest>().unwrap(), request);
    }
    let _ = found.value::<CallAnswer>();
    let command = framed(merganser_inside::isc::command::MAGIC, id, body);
    if let Ok((id, command)) = SessionCommand::decode(&command)
        && let Ok(bytes) = command.encode(id)
    {
        assert_eq!(SessionCommand::decode(&bytes).unwrap(), (id, command));
    }
    let page = framed(status::MAGIC, id, body);
    let _ = status::IscStatus::decode(&page);
    let _ = status::decode_list(&page);
    let _ = merganser_map::ssdlet::rows(body);
}

/// Bodies of messages, behind an id.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let lines = include_str!("../../../near/serve/tests/golden/session_wire.txt").lines();
    let bodies = lines.filter_map(|line| line.split_once(": ")).map(|(_, body)| body);
    let call = r#"{"args":{"to":5},"inputs":["logs/one"]}"#;
    // The nearest number to these digits is not the one that a quick reading finds.
    let exact = r#"{"args":{"to":124727500204660135625},"inputs":["logs/one"]}"#;
    bodies.chain([call, exact]).map(|body| [&[7; 8], body.as_bytes()].concat()).collect()
}
