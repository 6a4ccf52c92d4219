//! A device in real time: data from its storage, time from its model. A program of its own: it measures real time, which
//! other tests would disturb, and it looks for the threads of its process.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use merganser_device::device::Device;
use merganser_device::emulated::{
    Emulated, EmulatedOptions, Null, PathTime, SPIN_NS, ServedRequest,
};
use merganser_device::hdd::{Hdd, HddProfile};
use merganser_device::profile::SsdProfile;
use merganser_device::request::{ContentHash, DeviceRequest, RequestHashes, RequestKind};
use merganser_device::results::{Collector, DevicePower};
use merganser_device::ssd::Ssd;
use merganser_device::workload::{SubmissionPace, play};
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{
    Buffer, Completion, Completions, Operation, RealClock, Storage, StorageExt,
};
use parking_lot::Mutex;

const POWER: fn() -> DevicePower = || DevicePower::ssd(0.6, "of no matter");

fn jasmine() -> Box<dyn Device> {
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set("blocks_per_plane=16").expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(64 << 20);
    Box::new(ssd)
}

fn start(
    device: Box<dyn Device>,
    backing: Arc<dyn Storage>,
) -> (Arc<Emulated>, Arc<Mutex<Vec<ServedRequest>>>) {
    start_slower(device, backing, 1)
}

/// The same with a clock that is `slower`.
fn start_slower(
    device: Box<dyn Device>,
    backing: Arc<dyn Storage>,
    slower: u32,
) -> (Arc<Emulated>, Arc<Mutex<Vec<ServedRequest>>>) {
    let served = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&served);
    let observer: merganser_device::emulated::Observer =
        Box::new(move |one| theirs.lock().push(one));
    let (power, path, spin_ns) = (POWER(), PathTime::default(), SPIN_NS);
    // The first byte tells the pages of these tests apart.
    let hash = Some((|bytes: &[u8]| u128::from(bytes[0])) as ContentHash);
    let observer = Some(observer);
    let slower = NonZeroU32::new(slower).expect("not zero");
    let options = EmulatedOptions { device, backing, path, spin_ns, slower, power, observer, hash };
    (Emulated::start(options).expect("started"), served)
}

fn memory(bytes: u64) -> Arc<MemoryStorage> {
    let storage = MemoryStorage::new("memory");
    storage.run(Operation::SetSize { size: bytes }).expect("sized");
    storage
}

#[test]
fn data_come_from_the_storage_and_time_from_the_model() {
    let (disk, _) = start(jasmine(), memory(64 << 20));
    let started = Instant::now();
    disk.write_at(100, b"merganser").expect("written");
    let write = started.elapsed();
    assert!(write >= Duration::from_micros(1300), "a program alone takes 1.3 ms: {write:?}");
    assert_eq!(disk.read_vec(99, 11).expect("read"), b"\0merganser\0");
    assert!(started.elapsed() >= write + Duration::from_micros(250), "sensing alone");
    disk.run(Operation::Discard { offset: 0, len: 4096 }).expect("discarded");
    assert_eq!(disk.read_vec(100, 9).expect("read"), [0; 9]);
    disk.sync().expect("synced");
    let ended = disk.end();
    let results = &ended.results;
    let counts = [&results.reads, &results.writes, &results.others].map(|class| class.requests);
    assert_eq!((counts, ended.lag.requests), ([2, 1, 2], 5));
    let late = disk.read_vec(0, 1).expect_err("it has ended");
    assert_eq!(late.to_string(), "emulated jasmine: has ended");
}

/// The model gets requests as they come: its results are those of the recorded trace in virtual time,
/// to the nanosecond. With a slower clock, too: the trace is in the time of the model.
#[test]
fn the_model_does_not_know_of_the_host() {
    let hdd: fn() -> Box<dyn Device> = || {
        let profile = HddProfile::preset("barracuda").expect("a preset");
        Box::new(Hdd::new(&profile).expect("a disk"))
    };
    let jasmine: fn() -> Box<dyn Device> = jasmine;
    for (device, slower, count) in
        [(jasmine, 1, 200), (hdd, 1, 200), (jasmine, 4, 100), (hdd, 4, 60)]
    {
        let started = Instant::now();
        let (disk, served) = start_slower(device(), memory(64 << 20), slower);
        let completions = Completions::new();
        let mut random = merganser_random::Random::new(5);
        let mut submit = |token| {
            let (offset, buffer) = (random.below(16_000) * 4096, Buffer::new(4096));
            let operation = match token % 4 {
                0 => Operation::Write { offset, buffer },
                _ => Operation::Read { offset, buffer },
            };
            disk.submit(token, operation, &completions);
        };
        (0..8).for_each(&mut submit);
        for token in 8..count + 8 {
            completions.wait(&*disk.clock()).result.expect("served");
            if token < count {
                submit(token);
            }
        }
        let took = started.elapsed();
        let ended = disk.end();
        let mut served = served.lock().clone();
        served.sort_by_key(|one| one.number);
        assert!(served.iter().map(|one| one.number).eq(0..count));
        let answered = |one: &ServedRequest| one.request.arrival.0 + one.real_ns;
        let last = Duration::from_nanos(served.iter().map(answered).max().expect("some"));
        assert!(last * slower <= took, "{last:?} of the disk in {took:?}");
        assert!(served.iter().all(|one| (1..=8).contains(&one.depth)));
        let requests: Vec<DeviceRequest> = served.iter().map(|one| one.request.clone()).collect();

        let mut device = device();
        let mut collector = Collector::new(&*device);
        let played =
            play(&mut *device, requests.into_iter().map(Ok), SubmissionPace::Open, &mut collector)
                .expect("played");
        // The emulation's end lets the model write its buffer out.
        while device.advance() {}
        let replayed = collector.finish(&*device, played, &POWER());
        assert_eq!(replayed.digest, ended.results.digest);
        assert_eq!(replayed.reads, ended.results.reads);
        assert_eq!(replayed.writes, ended.results.writes);
        assert!(served.iter().all(|one| one.real_ns >= one.modelled_ns));
    }
}

/// Answers after a while, from a thread.
struct Slow {
    inner: Arc<MemoryStorage>,
    delay: Duration,
}

impl Storage for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn clock(&self) -> Arc<dyn merganser_storage::Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let (inner, delay) = (Arc::clone(&self.inner), self.delay);
        let completions = completions.clone();
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            inner.submit(token, operation, &completions);
        });
    }
}

#[test]
fn a_storage_slower_than_the_model_makes_a_run_invalid() {
    let slow = Slow { inner: memory(1 << 20), delay: Duration::from_millis(200) };
    let (disk, served) = start(jasmine(), Arc::new(slow));
    for _ in 0..3 {
        disk.read_vec(0, 4096).expect("read");
    }
    let ended = disk.end();
    assert_eq!((ended.lag.overtaken, ended.lag.late()), (3, 3));
    assert!(ended.lag.late_ns > 3 * 150_000_000 && !ended.lag.is_valid(), "{:?}", ended.lag);
    let served = served.lock();
    assert!(served.iter().all(|one| one.modelled_ns < 2_000_000 && one.real_ns > 190_000_000));
}

/// With a clock that is 4 times as slow, a request takes 4 times as long as the model says, and everything that
/// is counted is in the time of the model.
#[test]
fn a_slower_disk_counts_in_its_own_time() {
    const READ: Duration = Duration::from_millis(20);
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set("read_ns=20ms").expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(1 << 20);
    let before = Instant::now();
    let (disk, served) = start_slower(Box::new(ssd), memory(1 << 20), 4);
    let mut waits = Vec::new();
    for page in 0..4 {
        let started = Instant::now();
        disk.read_vec(page * 32_768, 4096).expect("read");
        waits.push(started.elapsed());
    }
    let took = before.elapsed();
    let ended = disk.end();
    let reads = &ended.results.reads.latency;
    assert!(reads.min() >= READ.as_nanos() as u64, "{reads:?}");
    assert!(reads.max() < 2 * READ.as_nanos() as u64, "of the model, not of the wall: {reads:?}");
    let served = served.lock();
    let (mut arrived, mut late_ns) = (0, 0);
    for (one, wait) in served.iter().zip(&waits) {
        assert!(*wait >= 4 * READ && *wait >= 4 * Duration::from_nanos(one.real_ns), "{wait:?}");
        assert!(one.real_ns >= one.modelled_ns && one.request.arrival.0 >= arrived, "{one:?}");
        arrived = one.request.arrival.0 + one.real_ns;
        late_ns += one.real_ns - one.modelled_ns;
    }
    assert!(4 * Duration::from_nanos(arrived) <= took, "{arrived} ns in {took:?}");
    assert_eq!((served.len(), ended.lag.late_ns), (4, late_ns));
}

#[test]
fn the_lag_of_a_slower_disk_is_in_its_own_time() {
    const DELAY: Duration = Duration::from_millis(400);
    let slow = Slow { inner: memory(1 << 20), delay: DELAY };
    let (disk, served) = start_slower(jasmine(), Arc::new(slow), 4);
    let started = Instant::now();
    disk.read_vec(0, 4096).expect("read");
    let took = started.elapsed();
    let ended = disk.end();
    let modelled_ns = served.lock()[0].modelled_ns;
    assert!(modelled_ns < 2_000_000, "{modelled_ns}");
    let late = Duration::from_nanos(ended.lag.late_ns);
    assert!(late >= DELAY / 4 - Duration::from_nanos(modelled_ns), "{late:?}");
    assert!(late <= took / 4, "{late:?} of {took:?}");
    assert_eq!(ended.lag.busy_ns, modelled_ns);
}

/// Fails every operation, at once.
struct Broken;

impl Storage for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn size(&self) -> u64 {
        1 << 20
    }

    fn clock(&self) -> Arc<dyn merganser_storage::Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let Operation::Read { buffer, .. } = operation else { panic!("only reads") };
        let result = Err(io::Error::other("broken: on purpose"));
        completions.post(Completion { token, buffer: Some(buffer), result });
    }
}

#[test]
fn a_failure_of_the_storage_is_the_requests_own() {
    let (disk, _) = start(Box::new(Null::new(1 << 20)), Arc::new(Broken));
    let error = disk.read_vec(0, 4096).expect_err("broken");
    assert_eq!(error.to_string(), "broken: on purpose");
}

#[test]
fn what_a_device_cannot_do_is_refused() {
    let (disk, _) = start(Box::new(Null::new(2 << 20)), memory(1 << 20));
    let refused = |operation| disk.run(operation).expect_err("refused").to_string();
    let buffer = Buffer::new(4096);
    assert_eq!(
        refused(Operation::Write { offset: (1 << 20) - 1, buffer }),
        "emulated null: 4096 bytes at byte 1048575, but it has 1048576 bytes"
    );
    assert_eq!(refused(Operation::SetSize { size: 1 }), "emulated null: a device keeps its size");
    assert_eq!(disk.read_at((1 << 20) - 10, &mut [0; 100]).expect("short"), 10);
    assert_eq!(disk.read_at(2 << 20, &mut [0; 100]).expect("nothing"), 0);
    let options = EmulatedOptions {
        device: Box::new(Null::new(1 << 20)),
        backing: memory(2 << 20),
        path: PathTime::default(),
        spin_ns: SPIN_NS,
        slower: NonZeroU32::MIN,
        power: POWER(),
        observer: None,
        hash: None,
    };
    let error = Emulated::start(options).err().expect("too large").to_string();
    assert_eq!(error, "memory: 2097152 bytes, but emulated null has 1048576");
}

/// Requests that are in flight at the end are answered, at once.
#[test]
fn an_end_does_not_wait_for_the_model() {
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set("read_ns=900ms").expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(1 << 20);
    let (disk, served) = start(Box::new(ssd), memory(1 << 20));
    let completions = Completions::new();
    let started = Instant::now();
    for token in 0..64 {
        let buffer = Buffer::new(4096);
        disk.submit(token, Operation::Read { offset: token * 4096, buffer }, &completions);
    }
    disk.end();
    for _ in 0..64 {
        assert_eq!(completions.poll().expect("answered").result.expect("read"), 4096);
    }
    let took = started.elapsed();
    let served = served.lock();
    let modelled_ns = served.iter().map(|one| one.modelled_ns).max().expect("all of them");
    assert!(modelled_ns >= 900_000_000, "{modelled_ns}");
    assert!(took < Duration::from_nanos(modelled_ns), "{took:?} of {modelled_ns} ns");
    assert!(served.iter().all(|one| one.request.kind == RequestKind::Read));
}

/// The time of the path is subtracted from the time that a request is delayed.
fn shortest_read_of_400_ms(path: PathTime, len: usize) -> Duration {
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set("read_ns=400ms").expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(1 << 20);
    let disk = Emulated::start(EmulatedOptions {
        device: Box::new(ssd),
        backing: memory(1 << 20),
        path,
        spin_ns: SPIN_NS,
        slower: NonZeroU32::MIN,
        power: POWER(),
        observer: None,
        hash: None,
    })
    .expect("started");
    // The shortest of several: on a busy machine, one may be woken late.
    let waits = (0..3).map(|_| {
        std::thread::sleep(Duration::from_millis(600));
        let started = Instant::now();
        disk.read_vec(0, len).expect("read");
        started.elapsed()
    });
    let shortest = waits.min().expect("three");
    let ended = disk.end();
    assert!(ended.results.reads.latency.min() >= 400_000_000);
    shortest
}

#[test]
fn the_path_to_a_device_is_part_of_its_time() {
    let path = PathTime { fixed_ns: 300_000_000, ..PathTime::default() };
    let shortest = shortest_read_of_400_ms(path, 4096);
    assert!(shortest < Duration::from_millis(400), "{shortest:?}");
}

/// The copy of bytes takes a part for each MiB: with 16 KiB a 64th.
#[test]
fn the_path_of_many_bytes_is_longer() {
    let (fixed_ns, read_ns_per_mib) = (50_000_000, 64 * 250_000_000);
    let path = PathTime { fixed_ns, read_ns_per_mib, write_ns_per_mib: u64::MAX };
    let shortest = shortest_read_of_400_ms(path, 16 << 10);
    assert!(shortest < Duration::from_millis(340), "{shortest:?}");
    let shortest = shortest_read_of_400_ms(path, 1 << 10);
    assert!(shortest > Duration::from_millis(300), "{shortest:?}");
}

/// The path takes its time on the wall: 300 ms are 75 ms of a disk that is 4 times as slow.
#[test]
fn the_path_to_a_slower_disk_is_a_shorter_part_of_its_time() {
    const PATH: Duration = Duration::from_millis(300);
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set("read_ns=100ms").expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(1 << 20);
    let disk = Emulated::start(EmulatedOptions {
        device: Box::new(ssd),
        backing: memory(1 << 20),
        path: PathTime { fixed_ns: PATH.as_nanos() as u64, ..PathTime::default() },
        spin_ns: SPIN_NS,
        slower: NonZeroU32::new(4).expect("not zero"),
        power: POWER(),
        observer: None,
        hash: None,
    })
    .expect("started");
    let read = Duration::from_millis(4 * 100);
    // The shortest of several: on a busy machine, one may be woken late.
    let waits = (0..3).map(|_| {
        std::thread::sleep(Duration::from_millis(600));
        let started = Instant::now();
        disk.read_vec(0, 4096).expect("read");
        started.elapsed()
    });
    let shortest = waits.min().expect("three");
    assert!((read - PATH..read).contains(&shortest), "{shortest:?}");
    let ended = disk.end();
    assert!(ended.results.reads.latency.min() >= 100_000_000);
}

#[test]
fn an_observer_gets_the_hashes_of_written_pages() {
    let (disk, served) = start(Box::new(Null::new(1 << 20)), memory(1 << 20));
    disk.write_at(4096, &[[5; 4096], [6; 4096]].concat()).expect("written");
    disk.write_at(0, &[7; 512]).expect("written");
    disk.read_vec(4096, 8192).expect("read");
    disk.sync().expect("synced");
    disk.end();
    let mut served = served.lock().clone();
    served.sort_by_key(|one| one.number);
    let contents: Vec<_> = served.into_iter().map(|one| one.request.content).collect();
    let two = RequestHashes::Pages([5, 6].into());
    assert_eq!(contents, [Some(two), Some(RequestHashes::Whole(7)), None, None]);
}

/// A hash takes time. The requests behind a write arrive when they were submitted, all the same.
#[test]
fn hashing_holds_up_no_arrival() {
    const HASH: Duration = Duration::from_millis(500);
    let served = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&served);
    let disk = Emulated::start(EmulatedOptions {
        device: Box::new(Null::new(1 << 20)),
        backing: memory(1 << 20),
        path: PathTime::default(),
        spin_ns: SPIN_NS,
        slower: NonZeroU32::MIN,
        power: POWER(),
        observer: Some(Box::new(move |one| seen.lock().push(one))),
        hash: Some(|bytes| {
            std::thread::sleep(HASH);
            u128::from(bytes[0])
        }),
    })
    .expect("started");
    let completions = Completions::new();
    for token in 0..4 {
        let mut buffer = Buffer::new(4096);
        buffer.fill(token as u8 + 1);
        disk.submit(token, Operation::Write { offset: token * 4096, buffer }, &completions);
    }
    for _ in 0..4 {
        completions.wait(&*disk.clock()).result.expect("written");
    }
    disk.end();
    let mut served: Vec<ServedRequest> = served.lock().clone();
    served.sort_by_key(|one| one.number);
    let arrivals: Vec<u64> = served.iter().map(|one| one.request.arrival.0).collect();
    // If each waited for the hash of the one before it, there would be three hashes between them.
    assert!(arrivals[3] - arrivals[0] < 3 * HASH.as_nanos() as u64, "{arrivals:?}");
    let contents: Vec<_> = served.into_iter().map(|one| one.request.content).collect();
    assert_eq!(contents, [1, 2, 3, 4].map(|hash| Some(RequestHashes::Whole(hash))));
    assert_eq!(
        disk.read_vec(3 * 4096, 1).err().map(|error| error.to_string()).as_deref(),
        Some("emulated null: has ended")
    );
}

/// With a large enough `spin_ns`, the thread that keeps the time does not sleep while the model works. That time
/// is one of the wall, however slow the clock is.
#[test]
fn the_pacer_spins_as_long_as_it_is_told() {
    let ms = |ms: u64| ms * 1_000_000;
    let spins = awake_of_looks("read_ns=900ms", 1, ms(890));
    assert!(spins.iter().any(|(awake, looks)| 2 * awake >= *looks), "{spins:?}");
    // 200 ms of 900. In the time of the model they would be 800.
    let sleeps = awake_of_looks("read_ns=225ms", 4, ms(200));
    assert!(sleeps.iter().any(|(awake, looks)| 2 * awake < *looks), "{sleeps:?}");
}

/// How often the pacer was found awake, and how often it was looked at, while one request was in flight. There are
/// several if those of other tests began and ended together with it.
fn awake_of_looks(setting: &str, slower: u32, spin_ns: u64) -> Vec<(u32, u32)> {
    let mut profile = SsdProfile::preset("jasmine").expect("a preset");
    profile.set(setting).expect("a parameter");
    let mut ssd = Ssd::new(&profile, 1).expect("a device");
    ssd.precondition(1 << 20);
    let before = pacers(|_| true);
    let disk = Emulated::start(EmulatedOptions {
        device: Box::new(ssd),
        backing: memory(1 << 20),
        path: PathTime::default(),
        spin_ns,
        slower: NonZeroU32::new(slower).expect("not zero"),
        power: POWER(),
        observer: None,
        hash: None,
    })
    .expect("started");
    let completions = Completions::new();
    disk.submit(0, Operation::Read { offset: 0, buffer: Buffer::new(4096) }, &completions);
    let mut found: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut looks = 0;
    let done = loop {
        std::thread::sleep(Duration::from_millis(20));
        if let Some(done) = completions.poll() {
            break done;
        }
        looks += 1;
        pacers(|_| true).into_iter().for_each(|pacer| found.entry(pacer).or_default().1 += 1);
        pacers(|state| state == "R")
            .into_iter()
            .for_each(|pacer| found.entry(pacer).or_default().0 += 1);
    };
    done.result.expect("read");
    disk.end();
    found.retain(|pacer, (_, seen)| !before.contains(pacer) && *seen + 2 >= looks);
    // A joined thread may be listed a moment longer, one of another test much longer.
    let until = Instant::now() + Duration::from_secs(3);
    let is_left = || pacers(|_| true).iter().any(|pacer| found.contains_key(pacer));
    while is_left() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let left = pacers(|_| true);
    found.retain(|pacer, _| !left.contains(pacer));
    found.into_values().collect()
}

/// The numbers of this process's pacers whose state is accepted; `R` is running or ready.
fn pacers(state_is: impl Fn(&str) -> bool) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let found = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (task, rest) = stat.split_once(" (pacer) ")?;
        state_is(rest.split_whitespace().next()?).then(|| task.to_owned())
    });
    found.collect()
}
