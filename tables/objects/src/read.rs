//! Reading ranges of an object, which must stay as it was when it was found.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use merganser_tables::{ObjectError, RangeRead, StoredObject};
use object_store::{GetOptions, ObjectMeta, ObjectStore};

use crate::address::ObjectAddress;
use crate::connect::{is_transport, patience};
use crate::requests::{BegunRequest, NoAnswer, Requests};
use crate::sentence::reason;

/// How often a range is asked for again whose bytes did not all come.
const AGAIN_MAX: u32 = 5;
/// The time before it is asked for again; each time twice as long.
const PAUSE: Duration = Duration::from_millis(100);

/// An object as it was when it was found.
pub(crate) struct FoundObject {
    requests: Arc<Requests>,
    store: Arc<dyn ObjectStore>,
    name: PathBuf,
    known: Arc<ObjectMeta>,
}

impl FoundObject {
    pub(crate) fn new(
        requests: &Arc<Requests>,
        store: &Arc<dyn ObjectStore>,
        address: &ObjectAddress,
        known: ObjectMeta,
    ) -> FoundObject {
        FoundObject {
            requests: Arc::clone(requests),
            store: Arc::clone(store),
            name: address.path(),
            known: Arc::new(known),
        }
    }
}

impl fmt::Debug for FoundObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundObject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl StoredObject for FoundObject {
    fn name(&self) -> &Path {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.known.size
    }

    fn begin(&self, range: Range<u64>) -> Box<dyn RangeRead> {
        let (store, known, of) = (Arc::clone(&self.store), Arc::clone(&self.known), range.clone());
        let request = self.requests.begin(async move { read(&*store, &known, of).await });
        Box::new(BegunRange { request, offset: range.start })
    }
}

struct BegunRange {
    request: BegunRequest<Result<Bytes, String>>,
    offset: u64,
}

impl RangeRead for BegunRange {
    fn wait(self: Box<Self>) -> Result<Bytes, ObjectError> {
        let failed = |why| ObjectError::Read { offset: self.offset, why };
        match self.request.wait() {
            Err(NoAnswer::Cancelled) => Err(ObjectError::Cancelled),
            Err(NoAnswer::Late) => unreachable!("waited for until the end was asked for"),
            Ok(answer) => answer.map_err(failed),
        }
    }
}

/// Reads a range. Requests that fail are repeated by the library; those whose answers end too early are repeated here.
async fn read(
    store: &dyn ObjectStore,
    known: &ObjectMeta,
    range: Range<u64>,
) -> Result<Bytes, String> {
    let end = Instant::now() + patience();
    let mut pause = PAUSE;
    for again in 0.. {
        let cut = match read_once(store, known, range.clone()).await {
            Ok(bytes) => return Ok(bytes),
            Err(ReadFailure::Final(why)) => return Err(why),
            Err(ReadFailure::Cut(why)) => why,
        };
        if again == AGAIN_MAX || Instant::now() >= end {
            let again = if again > 0 { ", and so in each of several attempts" } else { "" };
            return Err(format!(
                "{cut}{again}; look at the network and the server, then repeat the command"
            ));
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    unreachable!("the last attempt has returned")
}

/// Why a range was not read.
enum ReadFailure {
    /// Another attempt is of no use.
    Final(String),
    /// The answer ended too early.
    Cut(String),
}

/// The sentence for an object that is another now.
const CHANGED: &str =
    "was changed while it was read; repeat the command when no other program writes it";

async fn read_once(
    store: &dyn ObjectStore,
    known: &ObjectMeta,
    range: Range<u64>,
) -> Result<Bytes, ReadFailure> {
    let options = GetOptions {
        // A weak tag is never equal to another, so a server would always refuse it.
        if_match: known.e_tag.as_deref().filter(|tag| !tag.starts_with("W/")).map(quoted),
        ..GetOptions::new().with_range(Some(range.clone()))
    };
    let answer =
        store.get_opts(&known.location, options).await.map_err(|error| of_request(&error))?;
    // A server may not know the condition.
    let now = &answer.meta;
    let is_same = match (&now.e_tag, &known.e_tag) {
        (Some(now), Some(known)) => quoted(now) == quoted(known),
        // Lists of objects have the time more exactly than answers, and always a tag.
        (None, None) => now.last_modified == known.last_modified,
        _ => false,
    };
    if now.size != known.size || !is_same {
        return Err(ReadFailure::Final(CHANGED.to_owned()));
    }
    let wanted = usize::try_from(range.end - range.start).expect("in memory");
    let mut bytes = BytesMut::with_capacity(wanted);
    let mut stream = answer.into_stream();
    loop {
        let cut = |bytes: &BytesMut| {
            ReadFailure::Cut(format!("the answer ended after {} of {wanted} bytes", bytes.len()))
        };
        match stream.try_next().await {
            Ok(Some(more)) if bytes.len() + more.len() > wanted => {
                return Err(ReadFailure::Final(format!(
                    "the server sends more than the {wanted} bytes that were asked for; look at the server"
                )));
            }
            Ok(Some(more)) => bytes.extend_from_slice(&more),
            Ok(None) if bytes.len() == wanted => return Ok(bytes.freeze()),
            Ok(None) => return Err(cut(&bytes)),
            Err(error) if is_transport(&error) => return Err(cut(&bytes)),
            Err(error) => return Err(of_request(&error)),
        }
    }
}

/// A tag as answers have it: the lists of some stores leave out its quotation marks.
fn quoted(tag: &str) -> String {
    if tag.ends_with('"') { tag.to_owned() } else { format!("\"{tag}\"") }
}

/// The failure of a request, which the library has repeated as often as that helps.
fn of_request(error: &object_store::Error) -> ReadFailure {
    ReadFailure::Final(match error {
        object_store::Error::Precondition { .. } => CHANGED.to_owned(),
        object_store::Error::NotFound { .. } => {
            "was removed while it was read; repeat the command when it is there".to_owned()
        }
        error => match reason(error) {
            // All ranges were in the object.
            why if why.contains("416 ") => CHANGED.to_owned(),
            why => why,
        },
    })
}
