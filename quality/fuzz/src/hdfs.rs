//! Any bytes as a request for a map, as a frame of its answer, and as the head of a block's checksums: an error,
//! or a message that is written as it was read. A request that is understood is tried on a node without blocks.

use merganser_hadoop_node::hdfs::meta::{HEADER_BYTES, MetaHeader};
use merganser_hadoop_node::hdfs::protocol::{HEAD_BYTES, HdfsRequest, MapFrame, VERSION};
use merganser_hadoop_node::hdfs::{DataDirs, HdfsError, HdfsResult, MapTask, Modules, SegmentIndex, Sink};

/// Takes everything.
struct Anything;

impl Sink for Anything {
    fn data(&mut self, _: &[u8]) -> HdfsResult<()> {
        Ok(())
    }

    fn spill(&mut self, _: u32, _: u64, _: Vec<SegmentIndex>) -> HdfsResult<()> {
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> HdfsResult<()> {
        Ok(())
    }
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<(u16, &[u8])>(bytes) else { return };
    let (kind, body) = input;
    if let Ok(Some((frame, len))) = MapFrame::decode(body) {
        assert_eq!(frame.encode(), body[..len]);
    }
    if let Some(head) = body.first_chunk::<HEADER_BYTES>()
        && let Ok(header) = MetaHeader::decode(head)
    {
        assert_eq!(header.encode(), *head);
    }
    if let Some(head) = body.first_chunk::<HEAD_BYTES>() {
        let _ = HdfsRequest::head(*head);
    }
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(b"MGHN");
    head[4..6].copy_from_slice(&(1 + kind / 4 % VERSION).to_be_bytes());
    head[6..8].copy_from_slice(&(1 + kind % 4).to_be_bytes());
    head[8..].copy_from_slice(&(body.len() as u32).to_be_bytes());
    let Ok(head_read) = HdfsRequest::head(head) else { return };
    let Ok(request) = HdfsRequest::decode(head_read, body) else { return };
    assert_eq!(request.encode().unwrap(), [&head[..], body].concat());
    let HdfsRequest::Map(map) = request else { return };
    // Without ranges, the records are those of the tail.
    match MapTask::open(&map, &DataDirs::new(Vec::new()), &Modules::new(None), 16 << 20) {
        Ok(task) => match task.run(&mut Anything) {
            Ok(_) | Err(HdfsError::Tail { .. } | HdfsError::Record { .. }) => {}
            Err(error) => panic!("{error}"),
        },
        Err(HdfsError::Io { .. } | HdfsError::Damaged { .. } | HdfsError::Gone) => {
            panic!("no file")
        }
        Err(_) => {}
    }
}
