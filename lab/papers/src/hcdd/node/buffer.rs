//! The buffer of a node: writes go into the log together, and pages move to the SSDs.

use std::collections::VecDeque;

use merganser_array::Migration;
use merganser_array::outline::{self, Outline, Room, Write};
use merganser_device::request::{DeviceRequest, RequestHashes, RequestKind};

use super::{HybridNode, JobSubject, NodeError};

/// Pages that go into the log together at most, of requests that came while it was busy.
const TOGETHER_PAGES: u64 = 1024;

impl HybridNode {
    /// Passes the requests that wait to the log, if it isn't busy and has room, and moves pages if it is
    /// time to.
    pub(super) fn pump<E>(&mut self) -> Result<(), NodeError<E>> {
        while self.writing.is_none() && !self.queue.is_empty() {
            let Some(outline) = &mut self.outline else { return Ok(()) };
            let count = together(&self.queue, outline);
            if count == 0 {
                self.measured.held += 1;
                if !self.is_moving && !self.begin_move()? {
                    let text = "a request is larger than the buffer of the node has room for";
                    return Err(NodeError::Model(text.to_owned()));
                }
                return Ok(());
            }
            let first = outline.next_record();
            let DeviceRequest { kind, offset, len, .. } = self.queue[0];
            if kind == RequestKind::Trim {
                outline.trim(offset, len, &mut self.steps);
            } else {
                let writes: Vec<Write<'_>> = self.queue.range(..count).map(write_of).collect();
                outline.write(&writes, &mut self.steps);
            }
            let requests = self.queue.drain(..count);
            let requests: Vec<_> =
                requests.map(|request| (request.kind, request.arrival)).collect();
            if let Some(job) = self.jobs.begin(&mut self.steps) {
                self.writing = Some(first);
                self.requests_flying += count;
                self.fly(job, JobSubject::Log(requests));
            } else {
                // A trim of less than a page.
                for (kind, arrival) in requests {
                    self.answered(kind, arrival);
                }
            }
        }
        self.moves_at_once()
    }

    fn moves_at_once<E>(&mut self) -> Result<(), NodeError<E>> {
        if self.migration == Migration::Immediate && !self.is_moving {
            self.begin_move()?;
        }
        Ok(())
    }

    /// The record before which all are written.
    fn end_of_written(&self) -> u64 {
        let next = || self.outline.as_ref().map_or(0, Outline::next_record);
        self.writing.unwrap_or_else(next)
    }

    /// Whether records are written and have not moved.
    pub(super) fn can_move(&self) -> bool {
        self.outline.as_ref().is_some_and(|it| it.first_record() < self.end_of_written())
    }

    /// Begins to move pages. False if none can move now.
    pub(super) fn begin_move<E>(&mut self) -> Result<bool, NodeError<E>> {
        let end = self.end_of_written();
        let Some(outline) = &mut self.outline else { return Ok(false) };
        let moved = outline.begin_move(end);
        match moved.map_err(|error| NodeError::Model(error.to_string()))? {
            None => Ok(false),
            Some(mut steps) => {
                let job = self.jobs.begin(&mut steps).expect("it reads the log");
                self.is_moving = true;
                self.fly(job, JobSubject::Move);
                Ok(true)
            }
        }
    }
}

/// A write without its arrival.
fn write_of(request: &DeviceRequest) -> Write<'_> {
    let content = request.content.as_ref().map(|content| match content {
        RequestHashes::Whole(hash) => outline::ContentHashes::Whole(*hash),
        RequestHashes::Pages(hashes) => outline::ContentHashes::Pages(hashes),
    });
    Write { offset: request.offset, len: request.len, content }
}

/// How many of the first requests go into the log together; 0 if there is no room.
fn together(queue: &VecDeque<DeviceRequest>, outline: &Outline) -> usize {
    let (mut count, mut pages) = (0, 0);
    for request in queue {
        let is_trim = request.kind == RequestKind::Trim;
        let own = if is_trim { 0 } else { request.len.div_ceil(4096) + 1 };
        let has_room = outline.room(count as u64 + 1, pages + own) == Room::Enough;
        if !has_room || (count > 0 && (is_trim || pages + own > TOGETHER_PAGES)) {
            break;
        }
        (count, pages) = (count + 1, pages + own);
        if is_trim {
            break;
        }
    }
    count
}
