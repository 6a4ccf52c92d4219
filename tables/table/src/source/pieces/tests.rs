//! Readers of objects in memory, whose requests are looked at.

use merganser_random::Random;
use parking_lot::Mutex;

use super::*;

/// What was asked of an object.
#[derive(Debug, Default)]
struct Asked {
    ranges: Vec<Range<u64>>,
    /// Bytes and requests that are begun and not dropped, now and at most.
    begun: usize,
    begun_most: usize,
}

#[derive(Debug)]
struct MemoryObject {
    bytes: Vec<u8>,
    asked: Arc<Mutex<Asked>>,
}

struct MemoryRead(Bytes, Arc<Mutex<Asked>>);

impl StoredObject for MemoryObject {
    fn name(&self) -> &std::path::Path {
        "memory".as_ref()
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn begin(&self, range: Range<u64>) -> Box<dyn RangeRead> {
        assert!(range.start < range.end && range.end <= self.bytes());
        let mut asked = self.asked.lock();
        asked.begun += 1;
        asked.begun_most = asked.begun_most.max(asked.begun);
        asked.ranges.push(range.clone());
        let bytes = &self.bytes[range.start as usize..range.end as usize];
        Box::new(MemoryRead(Bytes::copy_from_slice(bytes), Arc::clone(&self.asked)))
    }
}

impl RangeRead for MemoryRead {
    fn wait(self: Box<Self>) -> Result<Bytes, ObjectError> {
        Ok(self.0.clone())
    }
}

impl Drop for MemoryRead {
    fn drop(&mut self) {
        self.1.lock().begun -= 1;
    }
}

fn pieces(size: u64, limit: u64) -> (Pieces, Arc<MemoryObject>) {
    let bytes = (0..size).map(|at| (at * 7 + at / 256) as u8).collect();
    let object = Arc::new(MemoryObject { bytes, asked: Arc::default() });
    (Pieces::new(Arc::clone(&object) as Arc<dyn StoredObject>, limit), object)
}

/// Reads a range as a page is read.
fn read(pieces: &mut Pieces, range: Range<u64>, object: &MemoryObject) {
    let mut at = range.start;
    while at < range.end {
        let bytes = pieces.bytes_at(at, range.end).expect("read");
        assert_eq!(bytes, object.bytes[at as usize..at as usize + bytes.len()]);
        at += bytes.len() as u64;
        pieces.was_read(range.start..at);
    }
}

/// Reads the columns side by side, each in pages of random sizes.
fn read_side_by_side(
    pieces: &mut Pieces,
    columns: &[Range<u64>],
    object: &MemoryObject,
    random: &mut Random,
) -> u64 {
    let mut most = 0;
    let mut at: Vec<u64> = columns.iter().map(|column| column.start).collect();
    for step in 1..=16 {
        for (at, column) in at.iter_mut().zip(columns) {
            let until = column.start + (column.end - column.start) * step / 16;
            while *at < until {
                let end = until.min(*at + 1 + random.below(40_000));
                read(pieces, *at..end, object);
                *at = end;
                most = most.max(pieces.held_bytes);
            }
        }
    }
    most
}

#[test]
fn columns_are_read_once_within_the_memory_and_eight_at_a_time() {
    let mut random = Random::new(3);
    for limit in [2_000_000, 4_000_000, 9_000_000, 40_000_000] {
        let lengths = [1_500_000_u64, 20, 400_000, 2_000_000, 90_000];
        let mut columns = Vec::new();
        let mut end = 4;
        for length in lengths {
            columns.push(end..end + length);
            end += length;
        }
        let next: Vec<_> =
            columns.iter().map(|column| column.start + end..column.end + end).collect();
        let (mut pieces, object) = pieces(2 * end + 100, limit);
        pieces.plan_group(0, || columns.clone());
        pieces.plan_group(1, || next.clone());
        let mut most = read_side_by_side(&mut pieces, &columns, &object, &mut random);
        pieces.keep_groups(|group| group == 1);
        most = most.max(read_side_by_side(&mut pieces, &next, &object, &mut random));
        assert!(most <= limit, "{most} of {limit}");
        let asked = object.asked.lock();
        assert!(asked.begun_most <= BEGUN_MAX, "{asked:?}");
        let bytes: u64 = asked.ranges.iter().map(|range| range.end - range.start).sum();
        assert_eq!(
            bytes,
            2 * lengths.iter().sum::<u64>(),
            "nothing twice, with a limit of {limit}"
        );
        // A row group that fits is read across its columns.
        let requests = asked.ranges.len();
        match limit {
            40_000_000 => assert_eq!(requests, 2),
            9_000_000 => assert_eq!(requests, 4),
            _ => assert!(requests > 10, "{requests}"),
        }
    }
}

#[test]
fn pages_that_are_not_planned_are_read_all_the_same() {
    let mut random = Random::new(4);
    for _ in 0..200 {
        let size = 1 + random.below(300_000);
        let (mut pieces, object) = pieces(size, random.below(200_000));
        // What a damaged file may say: columns that overlap, are empty, or are not in the file.
        let columns = (0..random.below(6)).map(|_| {
            let start = random.below(size + 10);
            start..start + random.below(size)
        });
        let columns: Vec<_> = columns.collect();
        pieces.plan_group(0, || columns);
        for _ in 0..20 {
            let start = random.below(size);
            let end = start + 1 + random.below(size - start);
            read(&mut pieces, start..end, &object);
            if random.one_in(8) {
                pieces.plan_run(start..size);
            }
        }
    }
}

#[test]
fn a_run_is_read_ahead_in_order() {
    let (mut pieces, object) = pieces(3_000_000, 1_200_000);
    pieces.put(2_999_000, Bytes::copy_from_slice(&object.bytes[2_999_000..]));
    read(&mut pieces, 2_999_500..3_000_000, &object);
    assert!(object.asked.lock().ranges.is_empty(), "the end is known");
    pieces.plan_run(10..3_000_000);
    for start in (10..2_900_010).step_by(50_000) {
        read(&mut pieces, start..start + 50_000, &object);
        assert!(pieces.held_bytes <= 1_200_000);
    }
    let asked = object.asked.lock();
    assert!(asked.ranges.windows(2).all(|two| two[0].end == two[1].start), "{asked:?}");
    assert!(asked.ranges.len() < 14 && asked.begun_most > 1, "{asked:?}");
}
