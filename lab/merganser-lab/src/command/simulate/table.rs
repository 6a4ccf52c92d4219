//! The results of a run as a table for people.

use std::fmt::Write;

use merganser_device::device::Component;
use merganser_device::results::{Class, DeviceResults};
use merganser_device::trace::Tally;
use merganser_device::workload::{AccessPattern, Arrivals, Sizes, Workload};
use merganser_pages::text;

use super::measured::MeasuredRun;

/// The percentiles of latency that are shown.
pub(crate) const PERCENTILES: [(f64, &str); 6] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99"), (1.0, "max")];

/// The table.
pub(crate) fn of_run(run: &MeasuredRun) -> String {
    let MeasuredRun { model, results, .. } = run;
    let mut out = String::new();
    let capacity = text::bytes(results.capacity_bytes);
    let _ = writeln!(out, "device        {}: {} ({capacity})", model.name(), model.about());
    let _ = writeln!(out, "workload      {}, seed {}", run.load, run.seed);
    if let Some(done) = &run.preconditioned {
        let filled = text::bytes(done.filled_bytes);
        let over = text::bytes(done.overwritten_bytes);
        let steady = if done.steady { "steady" } else { "NOT steady when its bound was reached" };
        let _ = writeln!(
            out,
            "before        {filled} filled, {over} overwritten, write amplification {:.3}, {steady}",
            done.write_amplification
        );
    }
    if let Some(tally) = &run.tally {
        let _ = writeln!(out, "trace         {}", tally_words(tally));
    }
    let _ = writeln!(out, "virtual time  {}", text::seconds(results.seconds()));
    out.push_str(&of_results(results));
    if !run.streams.is_empty() {
        out.push_str(&super::stream_report::table(run));
    }
    if let Some(steadiness) = results.steadiness() {
        let _ = writeln!(out, "steady state  {}", super::time_series::words(&steadiness));
    }
    if read_nothing(results) {
        out.push_str(
            "note          most reads found nothing written, which takes no flash; see --filled\n",
        );
    }
    let rate = results.events as f64 / run.wall_seconds.max(1e-9);
    let _ = writeln!(
        out,
        "simulation    {} events in {} ({} per second), digest {:016x}",
        text::count(results.events),
        text::seconds(run.wall_seconds),
        text::count(rate as u64),
        results.digest
    );
    out
}

/// Whether most reads of an SSD were of places that were never written.
pub(crate) fn read_nothing(results: &DeviceResults) -> bool {
    results.flash.is_some_and(|flash| {
        let found = flash.page_reads + flash.cached_pages + flash.buffered_pages;
        results.reads.requests > 0 && found < results.reads.requests / 2
    })
}

/// Of requests, parts, flash and energy.
pub(crate) fn of_results(results: &DeviceResults) -> String {
    let mut out = String::new();
    let heads: String = PERCENTILES.iter().map(|(_, name)| format!("{name:>11}")).collect();
    let _ = writeln!(
        out,
        "\n{:<8}{:>11}{:>11}{:>11}  latency, us:{:>11}{:>11}{heads}",
        "", "requests", "a second", "MB/s", "mean", "min"
    );
    for (name, class) in
        [("read", &results.reads), ("write", &results.writes), ("other", &results.others)]
    {
        if class.requests > 0 {
            out.push_str(&row(name, results, class));
        }
    }
    out + &of_parts(results)
}

/// Of parts, flash and energy.
pub(crate) fn of_parts(results: &DeviceResults) -> String {
    let mut out = "\n".to_owned();
    let _ = writeln!(out, "{:<12}{:>6}{:>14}{:>14}", "busy", "parts", "mean", "most");
    for (part, count, mean, most) in results.utilisations() {
        let _ = writeln!(
            out,
            "{:<12}{count:>6}{:>13.1}%{:>13.1}%",
            component_name(part),
            mean * 100.0,
            most * 100.0
        );
    }
    if let Some(flash) = &results.flash {
        let _ = writeln!(
            out,
            "\nflash         {} pages read, {} programmed ({} for the host, {} moved), {} blocks erased",
            text::count(flash.page_reads),
            text::count(flash.page_programs),
            text::count(flash.host_programs),
            text::count(flash.moved_pages),
            text::count(flash.erases)
        );
        let _ = writeln!(
            out,
            "buffer        {} pages written were taken and {} read were answered without flash",
            text::count(flash.buffered_pages),
            text::count(flash.cached_pages)
        );
        let _ = writeln!(
            out,
            "wear          write amplification {:.3}; erases of a block {} to {} in its life",
            flash.write_amplification(),
            flash.erases_min,
            flash.erases_max
        );
    }
    if let Some(flash) = results.flash.filter(|flash| flash.map_hits + flash.map_misses > 0) {
        let lookups = flash.map_hits + flash.map_misses;
        let _ = writeln!(
            out,
            "map           {} of {} entries were cached ({}); {} pages of it read, {} programmed",
            text::count(flash.map_hits),
            text::count(lookups),
            text::percent(flash.map_hits as f64 / lookups as f64),
            text::count(flash.map_reads),
            text::count(flash.map_programs)
        );
    }
    let _ = writeln!(
        out,
        "energy        {} J{}",
        text::significant(results.joules()),
        match results.seconds() {
            0.0 => String::new(),
            seconds => format!(", {} W on average", text::significant(results.joules() / seconds)),
        }
    );
    out
}

fn row(name: &str, results: &DeviceResults, class: &Class) -> String {
    let us = |ns: f64| format!("{:>11}", text::significant(ns / 1e3));
    let mut line = format!(
        "{name:<8}{:>11}{:>11}{:>11}  {:<12}",
        text::count(class.requests),
        text::significant(results.requests_per_second(class)),
        text::significant(results.rate(class) / 1e6),
        ""
    );
    line.push_str(&us(class.latency.mean()));
    line.push_str(&us(class.latency.min() as f64));
    for (share, _) in PERCENTILES {
        line.push_str(&us(class.latency.percentile(share) as f64));
    }
    line.push('\n');
    line
}

/// The name of a component.
pub(crate) fn component_name(part: Component) -> &'static str {
    match part {
        Component::Link => "link",
        Component::Processor => "processor",
        Component::Memory => "memory",
        Component::Channel => "channel",
        Component::Die => "die",
        Component::Spindle => "arm",
    }
}

fn tally_words(tally: &Tally) -> String {
    let mut words = format!("{} requests", text::count(tally.requests));
    for (count, what) in [
        (tally.other_disks, "of other units left out"),
        (tally.other_lines, "lines that are no request"),
        (tally.late, "earlier than the one before, given its time"),
        (tally.wrapped, "addresses wrapped"),
        (tally.bad_lines, "bad lines skipped"),
    ] {
        if count > 0 {
            let _ = write!(words, ", {} {what}", text::count(count));
        }
    }
    words
}

/// A workload in words.
pub(crate) fn words(of: &Workload) -> String {
    let pattern = match of.pattern {
        AccessPattern::Sequential => "sequential".to_owned(),
        AccessPattern::Strided(gap) => format!("strided by {}", text::memory(gap)),
        AccessPattern::Random => "random".to_owned(),
        AccessPattern::Mixed(share) => format!("mixed ({} random)", text::percent(share)),
        AccessPattern::Zipf(theta) => format!("Zipf {theta}"),
    };
    let sizes = match &of.sizes {
        Sizes::Fixed(bytes) => text::memory(*bytes),
        Sizes::Uniform(from, to) => format!("{} to {}", text::memory(*from), text::memory(*to)),
        Sizes::Exponential(mean) => format!("exponential, mean {}", text::memory(*mean)),
        Sizes::Choice(of) => {
            let each =
                of.iter().map(|(bytes, weight)| format!("{}:{weight}", text::memory(*bytes)));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    let arrivals = match of.arrivals {
        Arrivals::Closed(depth) => format!("{depth} in flight"),
        Arrivals::Every(gap) => format!("one each {} ns", gap.0),
        Arrivals::Uniform(gap) => format!("gaps uniform, mean {} ns", gap.0),
        Arrivals::Exponential(gap) => format!("Poisson, mean gap {} ns", gap.0),
    };
    let reads = text::percent(of.read_share);
    format!("{pattern}, {reads} reads, {sizes}, {arrivals}, over {}", text::memory(of.span_bytes))
}
