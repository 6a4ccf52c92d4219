//! Writable exports and devices: what is answered is there, what was flushed is durable, and a client that breaks
//! the protocol changes nothing that it did not fully ask for.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::client::*;
use super::*;

const WRITE: u16 = 1;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const FUA: u16 = 1;
const NO_HOLE: u16 = 2;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const ENOTSUP: u32 = 95;
const DISK_BYTES: usize = 4 << 20;

/// A disk that knows what of it is durable.
struct Disk {
    state: Mutex<DiskState>,
}

#[derive(Default)]
struct DiskState {
    now: Vec<u8>,
    durable: Vec<u8>,
    syncs: u32,
    discards: u32,
    /// Whether it refuses discards.
    no_holes: bool,
    /// The next change fails so.
    fails: Option<io::ErrorKind>,
}

impl Storage for Disk {
    fn name(&self) -> &str {
        "test disk"
    }

    fn size(&self) -> u64 {
        DISK_BYTES as u64
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let mut state = self.state.lock();
        let (mut buffer, mut result) = (None, Ok(0));
        match operation {
            Operation::Read { offset, buffer: mut to } => {
                let at = offset as usize;
                let len = to.len();
                to.copy_from_slice(&state.now[at..at + len]);
                (buffer, result) = (Some(to), Ok(len));
            }
            _ if state.fails.is_some() => {
                result = Err(io::Error::from(state.fails.take().expect("checked")));
            }
            Operation::Write { offset, buffer: from } => {
                let at = offset as usize;
                state.now[at..at + from.len()].copy_from_slice(&from);
                (buffer, result) = (Some(from), Ok(0));
            }
            Operation::Discard { .. } if state.no_holes => {
                result = Err(io::Error::from(io::ErrorKind::Unsupported));
            }
            Operation::Discard { offset, len } => {
                state.now[offset as usize..(offset + len) as usize].fill(0);
                state.discards += 1;
            }
            Operation::Sync => {
                state.durable = state.now.clone();
                state.syncs += 1;
            }
            other => panic!("{other:?}"),
        }
        drop(state);
        completions.post(Completion { token, buffer, result });
    }
}

/// A server of one writable export or device called `disk`.
struct Writable {
    folder: tempfile::TempDir,
    disk: Arc<Disk>,
    stopper: Stopper,
    run: Option<JoinHandle<Result<(), Error>>>,
}

impl Writable {
    fn new(access: Access) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let zeros = || vec![0; DISK_BYTES];
        let state = DiskState { now: zeros(), durable: zeros(), ..DiskState::default() };
        let disk = Arc::new(Disk { state: Mutex::new(state) });
        let exports = vec![
            Export { name: "disk".into(), storage: disk.clone(), access },
            Export::read_only("view", disk.clone() as Arc<dyn Storage>),
        ];
        let address = Address::Unix(folder.path().join("s"));
        let server = NbdServer::new(NbdOptions::new(address, exports)).expect("listens");
        let stopper = server.stopper();
        let run = Some(std::thread::spawn(move || server.run()));
        Writable { folder, disk, stopper, run }
    }

    fn client(&self, structured: bool) -> Client {
        Client::of_export(&self.socket(), b"disk", structured)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn uri(&self, name: &str) -> String {
        format!("nbd+unix:///{name}?socket={}", self.socket().display())
    }

    fn stop(mut self) -> Result<(), Error> {
        self.stopper.stop();
        self.run.take().expect("running").join().expect("no panic")
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(run) = self.run.take() {
            let _ = run.join();
        }
    }
}

const WRITABLE: [Access; 2] = [Access::Write, Access::Device];

/// Writes, alone on the connection; the error, 0 for none.
fn write(client: &mut Client, flags: u16, offset: u64, bytes: &[u8]) -> u32 {
    let head = request(WRITE, flags, 7, offset, bytes.len() as u32);
    client.send(&[&head, bytes]);
    client.status(7)
}

fn ask(client: &mut Client, command: u16, flags: u16, offset: u64, len: u32) -> u32 {
    client.request(command, flags, 9, offset, len);
    client.status(9)
}

#[test]
fn what_is_written_is_read_and_what_is_flushed_is_durable() {
    for (access, structured) in WRITABLE.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let served = Writable::new(access);
        let (mut one, mut other) = (served.client(structured), served.client(!structured));
        let bytes = lines(3 << 20);
        for (offset, len) in [(0, 512), (511, 2), (4095, 4098), (100_000, 1 << 20), (77, 3 << 20)] {
            assert_eq!(write(&mut one, 0, offset, &bytes[..len]), 0);
            assert_eq!(other.read(offset, len), Ok(bytes[..len].to_vec()));
        }
        assert_eq!(write(&mut one, 0, 5, &[]), 0);
        assert_eq!(served.disk.state.lock().syncs, 0);
        // A flush on any connection covers what was answered on all.
        assert_eq!(ask(&mut other, FLUSH, 0, 0, 0), 0);
        let durable = |from: usize| served.disk.state.lock().durable[from];
        assert_eq!((durable(77), durable(78)), (bytes[0], bytes[1]));
        for (len, syncs) in [(1, 2), (2 << 20, 3)] {
            assert_eq!(write(&mut one, FUA, 9000, &vec![b'!'; len]), 0);
            assert_eq!((durable(9000), served.disk.state.lock().syncs), (b'!', syncs));
        }
        for command in [TRIM, WRITE_ZEROES] {
            assert_eq!(write(&mut one, 0, 8000, &[b'?'; 9000]), 0);
            let discards = served.disk.state.lock().discards;
            assert_eq!(ask(&mut one, command, FUA, 8001, 5000), 0);
            assert_eq!(served.disk.state.lock().discards, discards + 1);
            let read = other.read(8000, 5002).expect("read");
            assert!(read[0] == b'?' && read[5001] == b'?' && read[1..5001].iter().all(|b| *b == 0));
            assert_eq!(durable(8001), 0);
        }
        assert_eq!(write(&mut one, 0, 0, &vec![1; 3 << 20]), 0);
        let discards = served.disk.state.lock().discards;
        assert_eq!(ask(&mut one, WRITE_ZEROES, NO_HOLE, 1, 5 << 19), 0);
        assert_eq!(served.disk.state.lock().discards, discards, "no hole was made");
        assert_eq!(one.read(0, 3), Ok(vec![1, 0, 0]));
        assert_eq!(one.read(5 << 19, 2), Ok(vec![0, 1]));
        served.stop().expect("nothing failed");
    }
}

/// A file system without holes: zeros are written, since no client expects that they are refused. A trim may be.
#[test]
fn zeros_are_written_where_no_holes_are_made() {
    for (access, structured) in WRITABLE.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let served = Writable::new(access);
        served.disk.state.lock().no_holes = true;
        let mut client = served.client(structured);
        // The first request finds out.
        for round in 1..4 {
            assert_eq!(write(&mut client, 0, 0, &vec![1; 3 << 20]), 0);
            assert_eq!(ask(&mut client, WRITE_ZEROES, FUA, 1, 5 << 19), 0);
            assert_eq!(served.disk.state.lock().syncs, round);
            assert_eq!(served.disk.state.lock().durable[..3], [1, 0, 0]);
            assert_eq!(client.read(5 << 19, 2), Ok(vec![0, 1]));
        }
        if access == Access::Device {
            assert_eq!(ask(&mut client, TRIM, 0, 0, 512), ENOTSUP);
        }
        served.disk.state.lock().fails = Some(io::ErrorKind::StorageFull);
        assert_eq!(ask(&mut client, WRITE_ZEROES, 0, 0, 512), ENOSPC);
        let error = served.stop().expect_err("the first failure").to_string();
        assert!(error.starts_with("test disk: zeroing") || access == Access::Device, "{error}");
    }
}

/// The protocol lets a client set the flag on every request where it was offered.
#[test]
fn forced_unit_access_is_taken_where_nothing_is_written() {
    for (access, structured) in WRITABLE.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let served = Writable::new(access);
        let mut client = served.client(structured);
        assert_eq!(ask(&mut client, FLUSH, FUA, 0, 0), 0);
        assert_eq!(served.disk.state.lock().syncs, 1);
        assert_eq!(ask(&mut client, READ, FUA, 5, 0), 0, "a read of no bytes");
        assert_eq!(ask(&mut client, READ, FUA | 1 << 7, 5, 0), EINVAL);
        served.stop().expect("nothing failed");
    }
}

#[test]
fn many_writes_are_in_flight() {
    WRITABLE.into_iter().for_each(many_writes_are_in_flight_to);
}

fn many_writes_are_in_flight_to(access: Access) {
    let served = Writable::new(access);
    let mut client = served.client(true);
    for i in 0..200_u64 {
        let head = request(WRITE, 0, i, i * 4096, 4096);
        client.send(&[&head, &[i as u8; 4096]]);
    }
    let mut left: Vec<u64> = (0..200).collect();
    while !left.is_empty() {
        let chunk = client.chunk();
        assert!(chunk.done && chunk.kind == 0, "{chunk:?}");
        left.retain(|&cookie| cookie != chunk.cookie);
    }
    for i in 0..200 {
        assert_eq!(client.read(i * 4096, 4096), Ok(vec![i as u8; 4096]));
    }
}

#[test]
fn failures_are_errors_of_their_request() {
    for (access, structured) in WRITABLE.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let served = Writable::new(access);
        let mut client = served.client(structured);
        let fails = |kind| served.disk.state.lock().fails = Some(kind);
        let large = vec![1; 3 << 20];
        for (kind, number) in [(io::ErrorKind::StorageFull, ENOSPC), (io::ErrorKind::Other, EIO)] {
            for bytes in [&large[..], &large[..10]] {
                fails(kind);
                assert_eq!(write(&mut client, 0, 0, bytes), number);
                assert_eq!(write(&mut client, 0, 0, bytes), 0, "the next one is fine");
            }
            for (command, flags) in [(FLUSH, 0), (TRIM, 0), (WRITE_ZEROES, 0), (WRITE_ZEROES, 2)] {
                fails(kind);
                let len = if command == FLUSH { 0 } else { 10 };
                assert_eq!(ask(&mut client, command, flags, 0, len), number);
            }
        }
        let end = DISK_BYTES as u64;
        assert_eq!(write(&mut client, 0, end - 1, b"xy"), ENOSPC);
        assert_eq!(write(&mut client, 0, u64::MAX, &large), ENOSPC);
        assert_eq!(write(&mut client, 1 << 7, 0, b"x"), EINVAL);
        assert_eq!(ask(&mut client, TRIM, 0, end, 1), EINVAL);
        assert_eq!(ask(&mut client, TRIM, NO_HOLE, 0, 1), EINVAL);
        assert_eq!(ask(&mut client, WRITE_ZEROES, 0, end, 1), ENOSPC);
        assert_eq!(ask(&mut client, WRITE_ZEROES, 1 << 4, 0, 1), EINVAL, "no fast zeros");
        assert_eq!(ask(&mut client, FLUSH, NO_HOLE, 0, 0), EINVAL);
        assert_eq!(client.read(0, 11), Ok(vec![1; 11]), "as the last good write left it");
        let error = served.stop().expect_err("the first failure").to_string();
        assert!(
            error.starts_with("test disk: writing 1048576 bytes at offset 0 failed"),
            "{error}"
        );
    }
}

/// A read-only export next to a writable one stays what it is.
#[test]
fn a_read_only_export_takes_no_write() {
    WRITABLE.into_iter().for_each(a_read_only_export_takes_no_write_to);
}

fn a_read_only_export_takes_no_write_to(access: Access) {
    let served = Writable::new(access);
    drop(served.client(true));
    let mut client = Client::of_export(&served.socket(), b"view", false);
    assert_eq!(write(&mut client, 0, 0, b"x"), 1, "EPERM");
    assert_eq!(ask(&mut client, TRIM, 0, 0, 1), 1);
    assert_eq!(ask(&mut client, WRITE_ZEROES, 0, 0, 1), 1);
    assert_eq!(ask(&mut client, FLUSH, 0, 0, 0), 0);
    assert_eq!(served.disk.state.lock().syncs, 0);
    assert_eq!(client.read(0, 1), Ok(vec![0]));
}

/// Clients that leave in the midst of a write, announce too much, send garbage, or don't read.
#[test]
fn hostile_writers_change_nothing_else() {
    WRITABLE.into_iter().for_each(hostile_writers_change_nothing_else_to);
}

fn hostile_writers_change_nothing_else_to(access: Access) {
    let served = Writable::new(access);
    let mut bystander = served.client(true);
    assert_eq!(write(&mut bystander, 0, 0, b"mine"), 0);
    for sent in [0, 1, 4095, 4096 * 3] {
        let mut client = served.client(sent % 2 == 0);
        let head = request(WRITE, 0, 1, 0, 4096 * 4);
        client.send(&[&head, &vec![0xff; sent]]);
        drop(client);
    }
    for bytes in [&[0xff; 28][..], &request(WRITE, 0, 1, 0, (32 << 20) + 1)] {
        let mut client = served.client(true);
        client.send(&[bytes]);
        client.is_hung_up_on();
    }
    // Long writes go piece by piece: what of one has come may be there, and nothing beyond it.
    let mut client = served.client(false);
    let head = request(WRITE, 0, 1, 1 << 20, 2 << 20);
    client.send(&[&head, &vec![0xff; (1 << 20) + 5]]);
    drop(client);
    // Many writes and not one reply read.
    let mut client = served.client(false);
    for i in 0..20 {
        let head = request(WRITE, 0, i, 3 << 20, 4096);
        client.send(&[&head, &[1; 4096]]);
    }
    drop(client);
    assert_eq!(bystander.read(0, 5), Ok(b"mine\0".to_vec()));
    assert_eq!(bystander.read(2 << 20, 10), Ok(vec![0; 10]));
    assert_eq!(write(&mut bystander, FUA, 0, b"still"), 0);
    served.stop().expect("nothing failed");
}

/// Runs a program that must succeed; false, with a line said, when it is not installed.
fn program(name: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(name).args(arguments).output() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: {name} is not installed");
            return None;
        }
        output => output.expect("it starts"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {}: {said}", output.status);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn nbdinfo_sees_what_it_can_do() {
    WRITABLE.into_iter().for_each(nbdinfo_sees_what_it_can_do_to);
}

fn nbdinfo_sees_what_it_can_do_to(access: Access) {
    let served = Writable::new(access);
    let Some(said) = program("nbdinfo", &["--json", &served.uri("disk")]) else { return };
    let flags = ["can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn"];
    let wanted: BTreeMap<_, _> = flags.iter().map(|flag| (*flag, "true")).collect();
    for (flag, value) in
        wanted.iter().chain([(&"is_read_only", &"false"), (&"can_fast_zero", &"false")])
    {
        assert!(said.contains(&format!("\"{flag}\": {value}")), "{flag}: {said}");
    }
}

#[test]
fn people_s_programs_write() {
    WRITABLE.into_iter().for_each(people_s_programs_write_to);
}

fn people_s_programs_write_to(access: Access) {
    let served = Writable::new(access);
    let at = |name: &str| served.folder.path().join(name).to_str().expect("text").to_owned();
    let (from, to) = (at("from"), at("to"));
    let bytes = lines(DISK_BYTES);
    fs::write(&from, &bytes).expect("written");
    if program("nbdcopy", &[&from, &served.uri("disk")]).is_some() {
        program("nbdcopy", &["--flush", &served.uri("disk"), &to]).expect("installed");
        assert!(fs::read(&to).expect("copied") == bytes);
    }
    let uri = served.uri("disk");
    let commands = [
        "write -P 7 1000 9000",
        "read -P 7 1000 9000",
        "write -f -P 8 0 4k",
        "read -P 8 0 4k",
        "write -z 512 1024",
        "read -P 0 512 1024",
        "discard 64k 64k",
        "read -P 0 64k 64k",
        "flush",
    ];
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    arguments.push(&uri);
    if let Some(said) = program("qemu-io", &arguments) {
        assert!(!said.contains("verification failed"), "{said}");
    }
    let engines = program("fio", &["--enghelp"]).unwrap_or_default();
    if !engines.lines().any(|line| line.trim() == "nbd") {
        return eprintln!("skipped: no fio with the engine nbd");
    }
    let uri = format!("--uri={uri}");
    let job = [
        "--name=w",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=16",
        "--size=4m",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--fsync=32",
        "--loops=2",
    ];
    program("fio", &job).expect("installed");
}
