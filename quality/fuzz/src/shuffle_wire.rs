//! Any bytes as a request to the merge process and as a frame of its answer: an error, or a message that
//! is written as it was read.

use merganser_hadoop_node::shuffle::WritableOrder;
use merganser_hadoop_node::shuffle::protocol::{HEAD_BYTES, MergeFrame, ShuffleRequest, VERSION};

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<(u16, &[u8])>(bytes) else { return };
    let (kind, body) = input;
    if let Ok(Some((frame, len))) = MergeFrame::decode(body) {
        assert_eq!(frame.encode(), body[..len]);
    }
    if let Some(head) = body.first_chunk::<HEAD_BYTES>() {
        let _ = ShuffleRequest::head(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(b"MGSH");
    head[4..6].copy_from_slice(&VERSION.to_be_bytes());
    head[6..8].copy_from_slice(&(kind % 4).to_be_bytes());
    head[8..].copy_from_slice(&(body.len() as u32).to_be_bytes());
    let Ok(head_read) = ShuffleRequest::head(head) else { return };
    let Ok(request) = ShuffleRequest::decode(head_read, body) else { return };
    assert_eq!(request.encode().unwrap(), [&head[..], body].concat());
    if let ShuffleRequest::Merge(merge) = request
        && let Ok(order) = merge.order.parse::<WritableOrder>()
    {
        assert_eq!(order.to_string().parse(), Ok(order));
    }
}
