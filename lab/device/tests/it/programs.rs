//! Programs inside a device: what they see, and what their reads, work and answers cost.

use std::sync::Arc;

use crate::common::{close, ssd};
use merganser_device::device::{CompletedCommand, Component, Device, IoCommand};
use merganser_device::request::{RequestKind, SimTime};
use merganser_device::ssd::Ssd;
use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId, Wake};
use merganser_storage::{Buffer, Work};
use parking_lot::Mutex;

const PAGE: u64 = 32 << 10;
/// Reads from here on are answered with the pages at 0, inverted.
const WINDOW: u64 = 64 << 20;

#[derive(Default)]
struct Seen {
    channels: Vec<u32>,
    busy: Vec<bool>,
    written: Vec<u8>,
    order: Vec<u64>,
    refusal: String,
}

/// Answers a read of n pages with n pages of its own, inverted; works for each page that comes.
struct Inverter {
    seen: Arc<Mutex<Seen>>,
    work: Vec<Work>,
    request: Option<RequestId>,
    output: Vec<u8>,
    left: u64,
}

impl NearProgram for Inverter {
    fn claims(&self, _: bool, offset: u64, _: usize) -> bool {
        offset >= WINDOW
    }

    fn request(&mut self, id: RequestId, request: HostRequest<'_>, inside: &mut dyn Inside) {
        let mut seen = self.seen.lock();
        match request {
            HostRequest::Write { bytes, .. } => {
                seen.written = bytes.to_vec();
                seen.refusal = inside.claim_memory(1 << 40).expect_err("too much").to_string();
                inside.claim_memory(60 << 20).expect("there is as much");
                inside.claim_memory(5 << 20).expect_err("no more");
                inside.release_memory(60 << 20);
                inside.answer(id, Ok(Buffer::new(0)));
            }
            HostRequest::Read { len, .. } => {
                self.request = Some(id);
                self.output = vec![0; len];
                self.left = len as u64 / PAGE;
                for page in 0..self.left {
                    let channel = inside.channel_of(page * PAGE);
                    seen.channels.push(channel);
                    seen.busy.push(inside.is_busy(channel));
                    inside.read(page, page * PAGE, Buffer::new(PAGE as usize));
                }
            }
        }
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        match wake {
            Wake::Read { token, buffer, result } => {
                assert_eq!(result.expect("it is read"), PAGE as usize);
                let at = (token * PAGE) as usize;
                for (out, byte) in self.output[at..at + PAGE as usize].iter_mut().zip(&*buffer) {
                    *out = !byte;
                }
                inside.work(token, &self.work);
            }
            Wake::Written { .. } => unreachable!("it writes nothing"),
            Wake::Worked { token } => {
                self.seen.lock().order.push(token);
                self.left -= 1;
                if self.left == 0 {
                    let mut answer = Buffer::new(self.output.len());
                    answer.copy_from_slice(&self.output);
                    inside.answer(self.request.take().expect("asked"), Ok(answer));
                }
            }
        }
    }
}

fn run(ssd: &mut Ssd, kind: RequestKind, offset: u64, buffer: Buffer) -> CompletedCommand {
    let len = buffer.len() as u64;
    ssd.submit(ssd.now(), IoCommand { id: 1, kind, offset, len, buffer: Some(buffer) });
    while ssd.advance() {}
    ssd.completed().expect("it ends")
}

/// A device with eight pages of data and the program; and what that sees.
fn device(settings: &[&str], work: &[Work]) -> (Ssd, Arc<Mutex<Seen>>) {
    let mut ssd = ssd("jasmine", settings);
    for page in 0..8 {
        let mut buffer = Buffer::new(PAGE as usize);
        buffer.fill(page as u8);
        run(&mut ssd, RequestKind::Write, page * PAGE, buffer).result.expect("written");
    }
    let seen = Arc::default();
    let program = Inverter {
        seen: Arc::clone(&seen),
        work: work.to_vec(),
        request: None,
        output: Vec::new(),
        left: 0,
    };
    ssd.attach(Box::new(program));
    (ssd, seen)
}

#[test]
fn a_program_answers_from_its_own_reads() {
    let (mut ssd, seen) = device(&[], &[Work::Compares(1)]);
    let crossed = |ssd: &Ssd| {
        let uses = ssd.statistics().uses;
        uses.iter().find(|u| u.part == Component::Link).expect("it has a link").services
    };
    let before = crossed(&ssd);
    let done = run(&mut ssd, RequestKind::Read, WINDOW, Buffer::new(8 * PAGE as usize));
    assert_eq!(done.result.expect("answered"), 8 * PAGE);
    let content = done.buffer.expect("it comes back");
    assert!((0..8).all(|page| content[page * PAGE as usize] == !(page as u8)));
    assert_eq!(crossed(&ssd), before + 1, "only the answer crosses the link");
    let seen = seen.lock();
    assert_eq!(seen.channels, [0, 1, 2, 3, 0, 1, 2, 3], "pages are on the channels in turn");
    assert_eq!(seen.busy, [[false; 4], [true; 4]].concat());
    assert_eq!(seen.order.len(), 8);
}

#[test]
fn a_program_takes_writes_and_claims_memory() {
    let (mut ssd, seen) = device(&[], &[]);
    let mut buffer = Buffer::new(512);
    buffer.fill(7);
    let done = run(&mut ssd, RequestKind::Write, WINDOW, buffer);
    assert_eq!(done.result.expect("taken"), 512);
    let seen = seen.lock();
    assert_eq!(seen.written, [7; 512]);
    let expected =
        "the device's memory has 67108864 of 67108864 bytes free, 1099511627776 were claimed";
    assert_eq!(seen.refusal, expected);
}

/// How long a claimed read of eight pages takes.
fn span(settings: &[&str], work: &[Work]) -> f64 {
    let (mut ssd, _) = device(settings, work);
    let start = ssd.now();
    let done = run(&mut ssd, RequestKind::Read, WINDOW, Buffer::new(8 * PAGE as usize));
    assert!(done.submitted >= start);
    (done.at.0 - done.submitted.0) as f64
}

/// Work is done while flash is read: what counts is the longer of both, and the rest of the shorter.
#[test]
fn work_and_flash_overlap() {
    let page = 190_000.0 + 250_000.0 + 32_768e9 / 66.7e6;
    let memory = 32_768e9 / 700e6;
    // The answer leaves the memory and crosses the link; pages come into the memory one by one.
    let link = 8.0 * 32_768e9 / 260e6 + 8.0 * memory;
    let firmware = 500e9 / 87.5e6;
    // Nearly no work: two rounds of four channels, and the answer.
    let little = span(&[], &[]);
    close("flash-bound, ns", little, 2.0 * page + 4.0 * memory + link + 4.0 * firmware, 0.01);
    // Two milliseconds of work a page: the first page, then work alone.
    let work = [Work::Compares(2_000_000 * 875 / 10_000 / 50)];
    close("work-bound, ns", span(&[], &work), page + memory + 8.0 * 2e6 + link, 0.01);
    let slow = span(&["processor_hz=43750000"], &work);
    close("half the clock, ns", slow, page + memory + 8.0 * 4e6 + link, 0.01);
}

/// Firmware's work for the host's reads and a program's work are one after another.
#[test]
fn programs_and_firmware_share_the_processor() {
    let settings = ["firmware_read_cycles=87500"];
    let (mut ssd, _) = device(&settings, &[Work::Compares(8750)]);
    let before = ssd.statistics();
    run(&mut ssd, RequestKind::Read, WINDOW, Buffer::new(8 * PAGE as usize));
    let busy = |s: &merganser_device::device::DeviceStatistics| {
        s.uses.iter().find(|u| u.part == Component::Processor).expect("it has one").busy
    };
    let spent = busy(&ssd.statistics()).0 - busy(&before).0;
    // 1 ms of firmware and 5 ms of comparisons a page.
    assert_eq!(SimTime(spent), SimTime(8 * (1_000_000 + 5_000_000)));
}

/// Writes what it is sent to the first pages, then reads it back as its answer.
struct Keeper {
    request: Option<RequestId>,
    result: Arc<Mutex<String>>,
}

impl NearProgram for Keeper {
    fn claims(&self, _: bool, offset: u64, _: usize) -> bool {
        offset >= WINDOW
    }

    fn request(&mut self, id: RequestId, request: HostRequest<'_>, inside: &mut dyn Inside) {
        self.request = Some(id);
        match request {
            HostRequest::Write { offset, bytes } => {
                let mut buffer = Buffer::new(bytes.len());
                buffer.copy_from_slice(bytes);
                inside.write(1, offset - WINDOW, buffer);
            }
            HostRequest::Read { offset, len } => {
                inside.read(2, offset - WINDOW, Buffer::new(len));
            }
        }
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        let id = self.request.take().expect("asked");
        match wake {
            Wake::Written { token, result, .. } => {
                assert_eq!(token, 1);
                *self.result.lock() = format!("{:?}", result.as_ref().map_err(ToString::to_string));
                inside.answer(id, Ok(Buffer::new(0)));
            }
            Wake::Read { buffer, .. } => inside.answer(id, Ok(buffer)),
            Wake::Worked { .. } => unreachable!("it does no work"),
        }
    }
}

fn keeper(settings: &[&str]) -> (Ssd, Arc<Mutex<String>>) {
    let mut ssd = ssd("jasmine", settings);
    let result = Arc::default();
    ssd.attach(Box::new(Keeper { request: None, result: Arc::clone(&result) }));
    (ssd, result)
}

/// A program's write goes to flash, past the link; what the host reads there is what was written,
/// whatever the write buffer held.
#[test]
fn a_program_writes_whole_pages() {
    let cache: &[&str] = &["cache_policy=lru", "cache_bytes=1M"];
    for settings in [&[], cache] {
        let (mut ssd, result) = keeper(settings);
        let filled = |value: u8, pages: u64| {
            let mut buffer = Buffer::new((pages * PAGE) as usize);
            buffer.fill(value);
            buffer
        };
        run(&mut ssd, RequestKind::Write, 0, filled(3, 8)).result.expect("written");
        run(&mut ssd, RequestKind::Write, WINDOW + PAGE, filled(9, 2)).result.expect("written");
        assert_eq!(*result.lock(), "Ok(())");
        let read = run(&mut ssd, RequestKind::Read, 0, Buffer::new(8 * PAGE as usize));
        let read = read.buffer.expect("it comes back");
        let pages: Vec<u8> = read.chunks(PAGE as usize).map(|page| page[77]).collect();
        assert_eq!(pages, [3, 9, 9, 3, 3, 3, 3, 3], "{settings:?}");
        let again = run(&mut ssd, RequestKind::Read, WINDOW + PAGE, filled(0, 1));
        assert_eq!(again.buffer.expect("it comes back")[0], 9);
    }
    let (mut ssd, result) = keeper(&[]);
    run(&mut ssd, RequestKind::Write, WINDOW + 512, Buffer::new(PAGE as usize));
    let expected = "Err(\"a program writes whole units of 32768 bytes, not 32768 bytes at 512\")";
    assert_eq!(*result.lock(), expected);
}

/// A page is programmed from the memory: the channel, the program, and nothing of the link.
#[test]
fn a_programs_write_takes_the_time_of_its_page() {
    let (mut ssd, _) = keeper(&[]);
    let done = run(&mut ssd, RequestKind::Write, WINDOW, Buffer::new(PAGE as usize));
    let firmware = 500e9 / 87.5e6;
    let page = 190_000.0 + 32_768e9 / 66.7e6 + 1_300_000.0;
    let link = 32_768e9 / 260e6;
    close("a page, ns", done.at.0 as f64, link + firmware + page, 0.001);
}

/// Audit finding F7: reads and copies of a program took no time of the memory's bus. In `jasmine`, as it
/// is, a byte that a program reads, copies and sends to the host crosses the bus four times.
#[test]
fn f7_a_merged_byte_crosses_the_bus_of_the_memory_four_times() {
    let (mut ssd, _) = device(&[], &[Work::CopiedBytes(PAGE)]);
    let busy = |ssd: &Ssd| {
        let uses = ssd.statistics().uses;
        uses.iter().find(|u| u.part == Component::Memory).expect("it has one").busy.0
    };
    let before = busy(&ssd);
    run(&mut ssd, RequestKind::Read, WINDOW, Buffer::new(8 * PAGE as usize));
    let crossings = 4.0 * 8.0 * PAGE as f64 * 1e9 / 700e6;
    close("bus, ns", (busy(&ssd) - before) as f64, crossings, 1e-4);
}

/// With the bus shared, reads, copies and work of programs wait for one another on it: each byte
/// crosses once into the memory, once to the processor, twice when it is copied, and once to leave.
#[test]
fn programs_share_the_bus_of_the_memory() {
    let slow = ["dram_bytes_per_second=20000000"];
    let bytes = 8.0 * 32_768.0;
    let bus = |passes: f64| passes * bytes * 1e9 / 20e6;
    let link = bytes * 1e9 / 260e6;
    // Into the memory, and out as the answer.
    let page = 190_000.0 + 250_000.0 + 32_768e9 / 66.7e6;
    let first = page + 500e9 / 87.5e6;
    close("pages alone, ns", span(&slow, &[]), first + bus(1.0 + 1.0) + link, 0.01);
    let read = [Work::ReadBytes(PAGE)];
    close("read by the processor, ns", span(&slow, &read), first + bus(2.0 + 1.0) + link, 0.01);
    let copied = [Work::CopiedBytes(PAGE)];
    close("copied, ns", span(&slow, &copied), first + bus(3.0 + 1.0) + link, 0.01);
    // Not shared: the slow bus carries the answer alone (in and out), and reads cost nothing.
    let apart = span(&[slow[0], "programs_use_memory=off"], &read);
    close("not shared, ns", apart, 2.0 * page + bus(2.0) + link, 0.01);
}

/// The times at which channels became idle, and at which the program's own pages came.
#[derive(Default)]
struct Noticed {
    idle: Vec<(u32, u64)>,
    came: Vec<u64>,
}

/// Reads the pages 0 and 4, which are on one channel: the second when the channel is idle.
struct OnIdle {
    noticed: Arc<Mutex<Noticed>>,
    request: Option<RequestId>,
    next: u64,
}

impl NearProgram for OnIdle {
    fn claims(&self, _: bool, offset: u64, _: usize) -> bool {
        offset >= WINDOW
    }

    fn request(&mut self, id: RequestId, _: HostRequest<'_>, inside: &mut dyn Inside) {
        self.request = Some(id);
        self.next = 4;
        inside.read(0, 0, Buffer::new(PAGE as usize));
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        assert!(matches!(wake, Wake::Read { .. }), "it only reads: {wake:?}");
        let mut noticed = self.noticed.lock();
        noticed.came.push(inside.now_ns());
        if noticed.came.len() == 2 {
            inside.answer(self.request.take().expect("asked"), Ok(Buffer::new(PAGE as usize)));
        }
    }

    fn channel_idle(&mut self, channel: u32, inside: &mut dyn Inside) {
        assert!(!inside.is_busy(channel));
        self.noticed.lock().idle.push((channel, inside.now_ns()));
        if channel == 0 && self.request.is_some() && self.next == 4 {
            self.next = 8;
            inside.read(4, 4 * PAGE, Buffer::new(PAGE as usize));
        }
    }
}

/// Issue 43: a merge heard of an idle channel only when its page had crossed the bus of the memory.
#[test]
fn i43_a_program_hears_of_an_idle_channel_before_the_page_crosses_the_bus() {
    let page = 500e9 / 87.5e6 + 250_000.0 + 190_000.0 + 32_768e9 / 66.7e6;
    let bus = 32_768e9 / 20e6;
    for (shared, crossing) in [("programs_use_memory=on", bus), ("programs_use_memory=off", 0.0)] {
        let settings = ["dram_bytes_per_second=20M", shared];
        let noticed: Arc<Mutex<Noticed>> = Arc::default();
        let program = OnIdle { noticed: Arc::clone(&noticed), request: None, next: 0 };
        let mut ssd = ssd("jasmine", &settings);
        for at in 0..8 {
            let (offset, buffer) = (at * PAGE, Buffer::new(PAGE as usize));
            run(&mut ssd, RequestKind::Write, offset, buffer).result.expect("written");
        }
        ssd.attach(Box::new(program));
        let start = ssd.now().0;
        run(&mut ssd, RequestKind::Read, WINDOW, Buffer::new(PAGE as usize));
        let from_start = |ns: u64| (ns - start) as f64;
        {
            let noticed = noticed.lock();
            let channels: Vec<u32> = noticed.idle.iter().map(|(channel, _)| *channel).collect();
            assert_eq!(channels, [0, 0], "{shared}");
            close("idle, ns", from_start(noticed.idle[0].1), page, 0.001);
            close("idle again, ns", from_start(noticed.idle[1].1), 2.0 * page, 0.001);
            close("the first page, ns", from_start(noticed.came[0]), page + crossing, 0.001);
            let second = (2.0 * page + crossing).max(page + 2.0 * crossing);
            close("the second page, ns", from_start(noticed.came[1]), second, 0.001);
        }
        // The host's own reads leave channels idle, too.
        run(&mut ssd, RequestKind::Read, 3 * PAGE, Buffer::new(PAGE as usize));
        assert_eq!(noticed.lock().idle.last().expect("a notice").0, 3);
    }
}
