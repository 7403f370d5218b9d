//! The tables, for the terminal and the page.

use super::outcome::Outcome;
use super::plan::NETWORKS;
use super::summary::Summary;
use anabranch_report::{Cell, Table};

/// One row for each run.
pub fn runs(summary: &Summary) -> Table {
    let mut table = Table::new("")
        .text("run")
        .number("frames", "", 0)
        .number("unusable", "", 0)
        .number("share", "%", 2)
        .number("I", "", 0)
        .number("P", "", 0)
        .number("B", "", 0);
    for network in &NETWORKS {
        table = table.number(network.name, "Mbit/s", 2);
    }
    table = table.number("in time", "Mbit/s", 2).number("overhead", "%", 1).number("late", "", 0);
    for run in &summary.runs {
        let lost = run.frames_unusable_by_class;
        let mut cells: Vec<Cell> = vec![
            run.name.as_str().into(),
            run.frames.into(),
            run.frames_unusable.into(),
            (100.0 * run.unusable_share()).into(),
            lost.i.into(),
            lost.p.into(),
            lost.b.into(),
        ];
        cells.extend(NETWORKS.iter().map(|n| Cell::from(run.path_mbit(n.name))));
        cells.extend([run.played_mbit().into(), (100.0 * run.wire_overhead).into(), run.packets_late.into()]);
        table.push(cells);
        if run.name == "best" {
            table = table.highlight();
        }
    }
    table
}

/// What became of the packets of media.
pub fn packets(runs: &[Outcome]) -> Table {
    let mut table = Table::new("Packets of media")
        .text("run")
        .number("sent by the encoder", "", 0)
        .number("put out in time", "", 0)
        .number("given up by the sender", "", 0)
        .number("arrived late", "", 0)
        .number("sent again", "", 0)
        .number("frames that cannot be decoded", "", 0);
    for run in runs {
        table.push((
            run.name.as_str(),
            run.packets,
            run.packets - run.packets_unusable,
            run.packets_given_up,
            run.packets_late,
            run.retransmissions,
            run.frames_undecodable,
        ));
    }
    table
}

/// What each link did with the packets it was given.
pub fn links(runs: &[Outcome]) -> Table {
    let mut table = Table::new("Packets on the links, towards the receiver")
        .text("run")
        .text("network")
        .number("given to the link", "", 0)
        .number("came out", "", 0)
        .number("dropped, queue full", "", 0)
        .number("lost at random", "", 0)
        .number("on the wire", "MB", 2)
        .number("way back", "MB", 2);
    for run in runs {
        for path in &run.paths {
            table.push((
                run.name.as_str(),
                path.name.as_str(),
                path.packets,
                path.packets_delivered,
                path.dropped_queue,
                path.dropped_loss,
                path.bytes_wire as f64 / 1e6,
                path.bytes_back as f64 / 1e6,
            ));
        }
    }
    table
}

/// The control before the runs and beside them.
pub fn control(summary: &Summary) -> Table {
    let mut table = Table::new("")
        .text("idle emulator")
        .number("packets", "", 0)
        .number("lost by the machine", "", 0)
        .number("delay error p50", "ms", 2)
        .number("p99", "ms", 2)
        .number("max", "ms", 2);
    let control = &summary.control;
    let named = std::iter::once(("before the runs".to_owned(), &control.overall));
    let beside = control.beside_runs.iter().enumerate().map(|(i, c)| (format!("beside runs, group {}", i + 1), c));
    for (name, c) in named.chain(beside) {
        table.push((
            name,
            c.packets,
            c.packets_lost,
            c.delay_error_p50_ms,
            c.delay_error_p99_ms,
            c.delay_error_max_ms,
        ));
    }
    table
}
