//! One upload: parts in flight, its completion, and its end after an error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use merganser_results::uploads::UploadNote;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{MultipartId, ObjectStoreExt, PutPayload};
use parking_lot::Mutex;

use super::plan::{PARTS_MAX, UploadPlan};
use crate::ObjectsError;
use crate::address::ObjectAddress;
use crate::connect::UploadStore;
use crate::find::answered;
use crate::requests::{BegunRequest, NoAnswer, Requests};

/// The time in which a store must say that an upload is aborted, before the process ends without it.
const ABORT: Duration = Duration::from_secs(5);

/// What the uploads of a result share.
#[derive(Clone)]
pub(super) struct UploadLink {
    pub(super) requests: Arc<Requests>,
    pub(super) store: Arc<dyn UploadStore>,
    pub(super) note: Arc<Mutex<UploadNote>>,
}

/// An object that is being written.
pub(super) struct ObjectParts {
    link: UploadLink,
    address: ObjectAddress,
    key: Key,
    plan: UploadPlan,
    /// The part that is filled.
    buffer: Vec<u8>,
    /// Parts that are sent, in order, with their bytes.
    flying: VecDeque<(u64, BegunRequest<object_store::Result<PartId>>)>,
    flying_bytes: u64,
    /// Parts that the store has.
    sent: Vec<PartId>,
    written: u64,
    /// The upload, as long as it is open.
    open: Option<MultipartId>,
}

impl ObjectParts {
    pub(super) fn new(
        link: &UploadLink,
        (address, key): (&ObjectAddress, Key),
        plan: UploadPlan,
    ) -> ObjectParts {
        ObjectParts {
            link: link.clone(),
            address: address.clone(),
            key,
            plan,
            buffer: Vec::new(),
            flying: VecDeque::new(),
            flying_bytes: 0,
            sent: Vec::new(),
            written: 0,
            open: None,
        }
    }

    /// Takes bytes, as many as its part has room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, ObjectsError> {
        let number = self.sent.len() + self.flying.len();
        let wanted = usize::try_from(self.plan.part_bytes(number)).expect("fits into memory");
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(wanted);
        }
        let taken = bytes.len().min(wanted - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        self.written += taken as u64;
        if self.buffer.len() == wanted {
            self.send()?;
        }
        Ok(taken)
    }

    /// Sends the part that is filled, when there is memory for the next one.
    fn send(&mut self) -> Result<(), ObjectsError> {
        let number = self.sent.len() + self.flying.len();
        if number == PARTS_MAX {
            return Err(ObjectsError::Store {
                name: self.address.shown(),
                why: "would have more than 10,000 parts, which stores do not take; give more --memory, whose parts are larger".to_owned(),
            });
        }
        let id = match &self.open {
            Some(id) => id.clone(),
            None => self.begin()?,
        };
        let part = std::mem::take(&mut self.buffer);
        let bytes = part.len() as u64;
        while self.flying_bytes + bytes + self.plan.part_bytes(number + 1)
            > self.plan.memory_bytes()
            && !self.flying.is_empty()
        {
            self.land()?;
        }
        let (store, key) = (Arc::clone(&self.link.store), self.key.clone());
        let part = PutPayload::from(Bytes::from(part));
        let request = async move { store.put_part(&key, &id, number, part).await };
        self.flying.push_back((bytes, self.link.requests.begin(request)));
        self.flying_bytes += bytes;
        Ok(())
    }

    /// Begins the upload, so that a store that refuses it does so before there is work. It is noted before, since a process that
    /// dies here leaves one that nothing else names.
    pub(super) fn begin(&mut self) -> Result<MultipartId, ObjectsError> {
        let shown = self.address.shown();
        self.link.note.lock().begins(&shown)?;
        let (store, key) = (Arc::clone(&self.link.store), self.key.clone());
        let begun = self.ask(async move { store.create_multipart(&key).await });
        let id = match begun {
            Ok(id) => id,
            Err(error) => {
                if !matches!(error, ObjectsError::Cancelled) {
                    self.link.note.lock().ended(&shown)?;
                }
                return Err(error);
            }
        };
        self.open = Some(id.clone());
        self.link.note.lock().begun(&shown, &id)?;
        Ok(id)
    }

    /// Waits for the first of the parts that are sent.
    fn land(&mut self) -> Result<(), ObjectsError> {
        if let Some((bytes, request)) = self.flying.pop_front() {
            self.flying_bytes -= bytes;
            self.sent.push(answered(request.wait(), &self.address)?);
        }
        Ok(())
    }

    /// Sends all that is left, and waits until the store has it. The last part may be small.
    pub(super) fn seal(&mut self) -> Result<(), ObjectsError> {
        if !self.buffer.is_empty() || self.sent.len() + self.flying.len() == 0 {
            self.send()?;
        }
        while !self.flying.is_empty() {
            self.land()?;
        }
        Ok(())
    }

    /// Makes the object.
    pub(super) fn finish(&mut self) -> Result<(), ObjectsError> {
        self.seal()?;
        let request = self.completion();
        self.completed(request.wait())
    }

    /// Begins the completion of an upload that is sealed.
    pub(super) fn completion(&self) -> BegunRequest<object_store::Result<()>> {
        let id = self.open.clone().expect("it is sealed");
        let (store, key) = (Arc::clone(&self.link.store), self.key.clone());
        let (parts, written) = (self.sent.clone(), self.written);
        self.link.requests.begin(async move {
            let before = store.head(&key).await.ok().and_then(|found| found.e_tag);
            let Err(error) = store.complete_multipart(&key, &id, parts).await else {
                return Ok(());
            };
            // Perhaps it is done, and the answer was lost: then the object is there.
            match store.head(&key).await {
                Ok(now) if now.size == written && now.e_tag.is_some() && now.e_tag != before => {
                    Ok(())
                }
                _ => Err(error),
            }
        })
    }

    /// Notes the end of an upload that is completed.
    pub(super) fn completed(
        &mut self,
        answer: Result<object_store::Result<()>, NoAnswer>,
    ) -> Result<(), ObjectsError> {
        answered(answer, &self.address)?;
        self.open = None;
        Ok(self.link.note.lock().ended(&self.address.shown())?)
    }

    /// The name of the object.
    pub(super) fn name(&self) -> String {
        self.address.shown()
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, ObjectsError> {
        answered(self.link.requests.run(request), &self.address)
    }
}

impl Drop for ObjectParts {
    /// Aborts an upload that is not completed. If the store does not say that it is, the note keeps it.
    fn drop(&mut self) {
        self.flying.clear();
        if let Some(id) = self.open.take()
            && abort(&self.link.requests, &self.link.store, (&self.key, id)).is_ok()
        {
            // If it can't be noted, it is aborted again.
            let _ = self.link.note.lock().ended(&self.address.shown());
        }
    }
}

/// Aborts an upload. One that is not there is aborted already.
pub(super) fn abort(
    requests: &Arc<Requests>,
    store: &Arc<dyn UploadStore>,
    (key, id): (&Key, MultipartId),
) -> Result<object_store::Result<()>, NoAnswer> {
    let (store, key) = (Arc::clone(store), key.clone());
    requests.run_at_end(ABORT, async move {
        match store.abort_multipart(&key, &id).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            done => done,
        }
    })
}
