//! The results of a run as JSON.

use merganser_device::results::{Class, DeviceResults};
use serde_json::{Map, Value, json};

use super::measured::MeasuredRun;
use super::model::ModelledDevice;
use super::table::{PERCENTILES, component_name};

/// Everything of a run.
pub(crate) fn of_run(run: &MeasuredRun) -> Value {
    let (streams, fairness) = super::stream_report::data(run);
    json!({
        "device": of_model(&run.model),
        "seed": run.seed,
        "workload": run.load,
        "preconditioned": run.preconditioned.map(|done| json!({
            "filled_bytes": done.filled_bytes,
            "overwritten_bytes": done.overwritten_bytes,
            "write_amplification": done.write_amplification,
            "steady": done.steady,
        })),
        "trace": run.tally.map(|tally| json!({
            "requests": tally.requests,
            "of_other_units": tally.other_disks,
            "other_lines": tally.other_lines,
            "late": tally.late,
            "wrapped": tally.wrapped,
            "bad_lines": tally.bad_lines,
        })),
        "streams": streams,
        "fairness": fairness,
        "results": of_results(&run.results),
        "reads_found_nothing": super::table::read_nothing(&run.results),
        "wall_seconds": run.wall_seconds,
    })
}

/// A device and its parameters.
pub(crate) fn of_model(model: &ModelledDevice) -> Value {
    let lines = model.parameters().into_iter();
    let parameters: Map<String, Value> = lines
        .map(|line| {
            let value = line.value.parse::<u64>().map_or(json!(line.value), |number| json!(number));
            (
                line.name.to_owned(),
                json!({ "value": value, "unit": line.unit, "source": line.source }),
            )
        })
        .collect();
    json!({ "name": model.name(), "about": model.about(), "parameters": parameters })
}

/// The measured results.
pub(crate) fn of_results(results: &DeviceResults) -> Value {
    let uses: Vec<Value> = results
        .uses
        .iter()
        .map(|part| {
            json!({
                "part": component_name(part.part),
                "index": part.index,
                "busy_ns": part.busy.0,
                "services": part.services,
                "utilisation": results.utilisation(part),
            })
        })
        .collect();
    let energy: Vec<Value> = results
        .energy
        .iter()
        .map(|part| {
            json!({
                "part": part.part.map_or("idle", component_name),
                "watts": part.watts,
                "busy_seconds": part.busy_seconds,
                "joules": part.joules,
            })
        })
        .collect();
    json!({
        "capacity_bytes": results.capacity_bytes,
        "elapsed_ns": results.elapsed_ns,
        "reads": class(results, &results.reads),
        "writes": class(results, &results.writes),
        "others": class(results, &results.others),
        "throughput": {
            "bin_ns": results.timeline.bin_ns(),
            "read_bytes": results.timeline.read(),
            "written_bytes": results.timeline.written(),
        },
        "over_time": super::time_series::data(results),
        "steady_state": results.steadiness().map(|found| super::time_series::steady(&found)),
        "parts": uses,
        "flash": results.flash.map(|flash| json!({
            "page_reads": flash.page_reads,
            "page_programs": flash.page_programs,
            "host_programs": flash.host_programs,
            "programmed_bytes": flash.programmed_bytes,
            "host_bytes": flash.host_bytes,
            "moved_pages": flash.moved_pages,
            "erases": flash.erases,
            "write_amplification": flash.write_amplification(),
            "block_erases_min": flash.erases_min,
            "block_erases_max": flash.erases_max,
            "buffered_pages": flash.buffered_pages,
            "cached_pages": flash.cached_pages,
            "map_hits": flash.map_hits,
            "map_misses": flash.map_misses,
            "map_reads": flash.map_reads,
            "map_programs": flash.map_programs,
        })),
        "energy": energy,
        "joules": results.joules(),
        "events": results.events,
        "digest": format!("{:016x}", results.digest),
    })
}

fn class(results: &DeviceResults, class: &Class) -> Value {
    let latency = &class.latency;
    let percentiles: Map<String, Value> = PERCENTILES
        .iter()
        .map(|(share, name)| ((*name).to_owned(), json!(latency.percentile(*share))))
        .collect();
    let buckets: Vec<_> =
        latency.buckets().map(|bucket| (bucket.low, bucket.high, bucket.count)).collect();
    json!({
        "requests": class.requests,
        "bytes": class.bytes,
        "requests_per_second": results.requests_per_second(class),
        "bytes_per_second": results.rate(class),
        "latency_ns": {
            "mean": latency.mean(),
            "deviation": latency.deviation(),
            "min": latency.min(),
            "percentiles": percentiles,
            "histogram": buckets,
        },
    })
}
