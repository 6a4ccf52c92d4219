//! The engine on a modelled SSD: what it sorts is right, what it does takes the device's and the
//! host's time, and with one thread that is the same to the nanosecond, every time.

use std::sync::Arc;

use merganser_device::profile::SsdProfile;
use merganser_device::simulated::{HostCosts, SimulatedDirectory, World};
use merganser_device::ssd::Ssd;
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::SortInput;
use merganser_sort::{CompressionChoice, Silent, SortOptions, SortOutput, Strategy, sort};
use merganser_storage::{Directory, StorageExt};
use merganser_testkit::oracle;
use merganser_testkit::patterns::{Pattern, RecordLayout, SampleInput};

const COSTS: HostCosts =
    HostCosts { compare_ps: 5_000, copied_byte_ps: 250, record_ps: 20_000, metered_ps: 0 };

/// What a sort of `sample` to a file took: nanoseconds, and a digest of all that the device did.
fn sorted(sample: &SampleInput, costs: HostCosts) -> (u64, u64) {
    let profile = SsdProfile::preset("nvme").expect("a preset");
    let ssd = Ssd::new(&profile, 1).expect("a device");
    let world = World::new(vec![Box::new(ssd)], costs);
    let directory: Arc<dyn Directory> = SimulatedDirectory::new(&world, 0);
    let input = directory.create("input").expect("new");
    input.write_at(0, &sample.bytes()).expect("written");
    let output = directory.create("output").expect("new");
    let started = world.now().0;
    let options = SortOptions::new(OrderSpec {
        keys: vec!["0:10".into()],
        ..OrderSpec::new(Format::Fixed { bytes: 100 })
    })
    .memory(6 << 20)
    // One thread, which decides alone when modelled time moves.
    .threads(0)
    .temp(vec![Arc::clone(&directory)])
    .compression(CompressionChoice::Fixed(merganser_sort::run::Compression::Off))
    .strategy(Strategy::Merge);
    let to = SortOutput::Storage(Arc::clone(&output));
    let report = sort(vec![SortInput::Storage(input)], to, &options, &Silent).expect("sorted");
    assert!(report.runs > 2, "{report:?}: it does not fit into the memory");
    let ended = world.now().0;
    let bytes = output.read_vec(0, output.size() as usize).expect("read");
    oracle::check_sample(sample, &bytes);
    (ended - started, world.statistics(0).digest)
}

#[test]
fn a_sort_with_one_thread_is_the_same_every_time() {
    let layout = RecordLayout::Fixed { bytes: 100, key_bytes: 10 };
    let sample = SampleInput::new(Pattern::Random, layout, 120_000, 7);
    let first = sorted(&sample, COSTS);
    for _ in 0..3 {
        assert_eq!(sorted(&sample, COSTS), first);
    }
    let (free, _) = sorted(&sample, HostCosts::default());
    let charged = first.0 - free;
    // Each record is compared, handled and copied at least twice: in its run and in the merge.
    assert!(charged > 120_000 * 2 * (20 + 25) && free > 12_000_000 * 2 / 4, "{first:?} {free}");
}
