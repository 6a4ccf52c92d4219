//! The steps of a request or a move, command by command, on devices that share one time.

use merganser_array::Role;
use merganser_array::outline::{Access, Step, Transfer};
use merganser_device::device::{CompletedCommand, Device, IoCommand};
use merganser_device::request::{RequestKind, SimTime};

/// The number of a job.
pub(super) type JobId = usize;

/// One command to a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct IssuedCommand {
    pub device: usize,
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
}

/// The steps of a request or a move; one of them is in progress.
#[derive(Debug, Default)]
struct DeviceJob {
    /// The last one is next.
    steps: Vec<Step>,
    /// Commands in flight, and work of the processor.
    open: u32,
}

/// Jobs, devices and the processor.
pub(super) struct DeviceJobs {
    pub devices: Vec<Box<dyn Device>>,
    /// Number of data members, which come first, and how both arrays are striped.
    data: usize,
    striping: [merganser_array::Striping; 2],
    hash_ns: u64,
    jobs: Vec<DeviceJob>,
    free_jobs: Vec<JobId>,
    /// By command: its job.
    commands: Vec<JobId>,
    free_commands: Vec<u64>,
    /// When the processor will have hashed, and for which job.
    hashing: Option<(SimTime, JobId)>,
    pub hashed_ns: u64,
    pub now: SimTime,
}

impl DeviceJobs {
    pub(super) fn new(
        devices: Vec<Box<dyn Device>>,
        data: usize,
        striping: [merganser_array::Striping; 2],
        hash_ns: u64,
    ) -> DeviceJobs {
        DeviceJobs {
            devices,
            data,
            striping,
            hash_ns,
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            commands: Vec::new(),
            free_commands: Vec::new(),
            hashing: None,
            hashed_ns: 0,
            now: SimTime(0),
        }
    }

    fn new_job(&mut self) -> JobId {
        self.free_jobs.pop().unwrap_or_else(|| {
            self.jobs.push(DeviceJob::default());
            self.jobs.len() - 1
        })
    }

    /// Begins a job of these steps, which are taken out of `steps`. `None` if it has ended already.
    pub(super) fn begin(&mut self, steps: &mut Vec<Step>) -> Option<JobId> {
        let id = self.new_job();
        let own = &mut self.jobs[id].steps;
        own.clear();
        own.extend(steps.drain(..).rev());
        self.proceed(id).then_some(id)
    }

    /// Begins a job of one step of these commands.
    pub(super) fn begin_parts(
        &mut self,
        parts: impl Iterator<Item = IssuedCommand>,
    ) -> Option<JobId> {
        let id = self.new_job();
        for part in parts {
            self.submit(id, part);
        }
        let is_open = self.jobs[id].open > 0;
        if !is_open {
            self.free_jobs.push(id);
        }
        is_open.then_some(id)
    }

    /// Begins the steps of a job up to the next one that waits; false when the job has ended.
    fn proceed(&mut self, id: JobId) -> bool {
        while let Some(step) = self.jobs[id].steps.pop() {
            match step {
                Step::Hash(pages) if pages * self.hash_ns == 0 => {}
                Step::Hash(pages) => {
                    let ns = pages * self.hash_ns;
                    self.hashed_ns += ns;
                    debug_assert!(self.hashing.is_none(), "one job hashes");
                    self.hashing = Some((SimTime(self.now.0 + ns), id));
                    self.jobs[id].open += 1;
                }
                Step::Transfer(transfer) => self.transfer(id, &transfer),
                Step::Wait if self.jobs[id].open > 0 => return true,
                Step::Wait => {}
            }
        }
        debug_assert_eq!(self.jobs[id].open, 0, "a list ends by waiting");
        self.free_jobs.push(id);
        false
    }

    fn transfer(&mut self, job: JobId, transfer: &Transfer) {
        let is_data = transfer.role == Role::Data;
        let first = if is_data { 0 } else { self.data };
        let striping = self.striping[usize::from(!is_data)];
        let kind = match transfer.access {
            Access::Read => RequestKind::Read,
            Access::Write => RequestKind::Write,
            Access::Sync => {
                for device in first..first + striping.members {
                    let kind = RequestKind::Flush;
                    self.submit(job, IssuedCommand { device, kind, offset: 0, len: 0 });
                }
                return;
            }
        };
        for part in striping.parts(transfer.offset, transfer.len) {
            let device = first + part.member;
            let (offset, len) = (part.offset, part.len);
            self.submit(job, IssuedCommand { device, kind, offset, len });
        }
    }

    fn submit(&mut self, job: JobId, part: IssuedCommand) {
        let id = self.free_commands.pop().unwrap_or_else(|| {
            self.commands.push(0);
            self.commands.len() as u64 - 1
        });
        self.commands[id as usize] = job;
        self.jobs[job].open += 1;
        let IssuedCommand { device, kind, offset, len } = part;
        self.devices[device].submit(self.now, IoCommand { id, kind, offset, len, buffer: None });
    }

    /// When something happens next.
    pub(super) fn next_at(&self) -> Option<(SimTime, usize)> {
        let mut next: Option<(SimTime, usize)> =
            self.hashing.map(|(at, _)| (at, self.devices.len()));
        for (number, device) in self.devices.iter().enumerate() {
            if let Some(at) = device.next_at()
                && next.is_none_or(|(best, _)| at < best)
            {
                next = Some((at, number));
            }
        }
        next
    }

    /// Lets `who`, of [`DeviceJobs::next_at`], do what is due at `at`. Jobs that have ended are added to `ended`.
    ///
    /// # Errors
    /// A device's sentence, when it refuses a command.
    pub(super) fn advance(
        &mut self,
        (at, who): (SimTime, usize),
        ended: &mut Vec<JobId>,
    ) -> Result<(), String> {
        self.now = self.now.max(at);
        if who == self.devices.len() {
            let (_, id) = self.hashing.take().expect("it is due");
            self.jobs[id].open -= 1;
            if self.jobs[id].open == 0 && !self.proceed(id) {
                ended.push(id);
            }
            return Ok(());
        }
        self.devices[who].advance();
        while let Some(CompletedCommand { id, result, .. }) = self.devices[who].completed() {
            result.map_err(|error| format!("{}: {error}", self.devices[who].name()))?;
            let job = self.commands[id as usize];
            self.free_commands.push(id);
            self.jobs[job].open -= 1;
            if self.jobs[job].open == 0 && !self.proceed(job) {
                ended.push(job);
            }
        }
        Ok(())
    }
}
