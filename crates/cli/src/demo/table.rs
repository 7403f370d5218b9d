//! The tables, for the terminal and the page.

use super::outcome::Outcome;
use super::plan::NETWORKS;
use super::summary::Summary;
use anabranch_report::{Cell, Table};

/// One row for each run, for a terminal.
pub fn runs(summary: &Summary) -> Table {
    let mut table = frame_columns();
    for network in &NETWORKS {
        table = table.number(network.name, "Mbit/s", 2);
    }
    table = table.number("in time", "Mbit/s", 2).number("overhead", "%", 1).number("late", "", 0);
    for run in &summary.runs {
        let mut cells = frame_cells(run);
        cells.extend(rate_cells(run));
        cells.extend([(100.0 * run.wire_overhead).into(), run.packets_late.into()]);
        table = with(table, run, cells);
    }
    table
}

/// The frames of each run.
pub fn frames(summary: &Summary) -> Table {
    let mut table = frame_columns().number("cannot be decoded", "", 0);
    for run in &summary.runs {
        let mut cells = frame_cells(run);
        cells.push(run.frames_undecodable.into());
        table = with(table, run, cells);
    }
    table
}

/// The rates of each run.
pub fn rates(summary: &Summary) -> Table {
    let mut table = Table::new("").text("run");
    for network in &NETWORKS {
        table = table.number(format!("over {}", network.name), "Mbit/s", 2);
    }
    table = table.number("media in time", "Mbit/s", 2).number("overhead", "%", 1);
    for run in &summary.runs {
        let mut cells: Vec<Cell> = vec![run.name.as_str().into()];
        cells.extend(rate_cells(run));
        cells.push((100.0 * run.wire_overhead).into());
        table = with(table, run, cells);
    }
    table
}

fn frame_columns() -> Table {
    Table::new("")
        .text("run")
        .number("frames", "", 0)
        .number("unusable", "", 0)
        .number("share", "%", 2)
        .number("I", "", 0)
        .number("P", "", 0)
        .number("B", "", 0)
}

fn frame_cells(run: &Outcome) -> Vec<Cell> {
    let lost = run.frames_unusable_by_class;
    vec![
        run.name.as_str().into(),
        run.frames.into(),
        run.frames_unusable.into(),
        (100.0 * run.unusable_share()).into(),
        lost.i.into(),
        lost.p.into(),
        lost.b.into(),
    ]
}

/// Rates of the networks, and of the media that was put out in time.
fn rate_cells(run: &Outcome) -> impl Iterator<Item = Cell> + '_ {
    NETWORKS.iter().map(|n| run.path_mbit(n.name).into()).chain([run.played_mbit().into()])
}

/// Adds a row; that of `best` stands out.
fn with(mut table: Table, run: &Outcome, cells: Vec<Cell>) -> Table {
    table.push(cells);
    if run.name == "best" { table.highlight() } else { table }
}

/// What became of the packets of media.
pub fn packets(runs: &[Outcome]) -> Table {
    let mut table = Table::new("Packets of media")
        .text("run")
        .number("from the encoder", "", 0)
        .number("in time", "", 0)
        .number("late", "", 0)
        .number("given up", "", 0)
        .number("sent again", "", 0);
    for run in runs {
        table.push((
            run.name.as_str(),
            run.packets,
            run.packets - run.packets_unusable,
            run.packets_late,
            run.packets_given_up,
            run.retransmissions,
        ));
    }
    table
}

/// What each link did with the packets it was given.
pub fn links(runs: &[Outcome]) -> Table {
    let mut table = Table::new("Packets on the links towards the receiver")
        .text("run")
        .text("network")
        .number("given", "", 0)
        .number("came out", "", 0)
        .number("queue full", "", 0)
        .number("lost", "", 0)
        .number("given", "MB", 2)
        .number("back", "MB", 2);
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
        table.push((name, c.packets, c.packets_lost, c.delay_error_p50_ms, c.delay_error_p99_ms, c.delay_error_max_ms));
    }
    table
}
