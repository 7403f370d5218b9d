//! Writes a page that shows every kind of plot and table, from made-up numbers: `sample [FILE]`.

use anabranch_base::RandomStream;
use anabranch_report::{BarPlot, Fact, LinePlot, Page, Plot, ReportError, Section, Table, Verdict, write_atomically};
use std::f64::consts::TAU;

/// Numbers that look measured and are the same on every run.
struct Noise(RandomStream);

impl Noise {
    /// Uniform between -1 and 1.
    fn next(&mut self) -> f64 {
        2.0 * self.0.unit() - 1.0
    }
}

fn wave(noise: &mut Noise, base: f64, swing: f64, i: u32, per_second: f64) -> (f64, f64) {
    let t = f64::from(i) / per_second;
    (t, (base + swing * (TAU * t / 7.0).sin() * 0.4 + swing * noise.next()).max(0.0))
}

fn rate_plot(noise: &mut Noise) -> LinePlot {
    let wlan: Vec<_> = (0..150)
        .map(|i| wave(noise, 5.6, 0.35, i, 10.0))
        .map(|(t, v)| (t, if (6.0..8.5).contains(&t) { 0.0 } else { v }))
        .collect();
    let mobile: Vec<_> = (0..150)
        .map(|i| wave(noise, 2.4, 0.3, i, 10.0))
        .map(|(t, v)| (t, if (6.2..8.7).contains(&t) { 3.8 } else { v }))
        .collect();
    LinePlot::new("Rate per path")
        .note("Bytes on the wire in slots of 100 ms.")
        .x("media time", "s")
        .y("rate", "Mbit/s")
        .series("wlan", &wlan)
        .series("3g", &mobile)
        .span(6.0, 8.5, "wlan cut")
        .marker(6.2, "switch to 3g")
        .marker(8.7, "wlan is back")
}

fn unusable_plot(noise: &mut Noise) -> LinePlot {
    let mut share = |name: usize, level: f64| -> Vec<(f64, f64)> {
        (0..16)
            .map(|i| (f64::from(i), (level + level * 0.3 * noise.next() - 0.4 * name as f64).clamp(0.0, 100.0)))
            .collect()
    };
    LinePlot::new("Unusable frames over time")
        .x("media time", "s")
        .y("share of frames", "%")
        .series("wlan alone", share(0, 31.0))
        .color(0)
        .steps()
        .series("3g alone", share(1, 55.0))
        .color(1)
        .steps()
        .series("round_robin", share(2, 9.0))
        .color(3)
        .steps()
        .series("best", share(3, 1.4))
        .color(2)
        .steps()
        .height(200.0)
}

fn delay_plot(noise: &mut Noise) -> LinePlot {
    let samples: Vec<_> = (0..45_000)
        .map(|i| {
            let (t, v) = wave(noise, 120.0, 40.0, i, 3_000.0);
            (t, if i % 4_111 == 0 { v + 170.0 } else { v })
        })
        .collect();
    LinePlot::new("Delay of each packet")
        .note("45,000 packets; each pixel column shows its lowest and its highest, so that no peak is lost.")
        .x("media time", "s")
        .y("delay", "ms")
        .series("best", samples)
        .color(2)
        .limit(300.0, "latency 300 ms")
        .height(190.0)
}

fn sweep_plots(noise: &mut Noise) -> [LinePlot; 2] {
    let loss: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
    let mut line = |scale: f64| {
        let mid: Vec<_> = loss.iter().map(|&l| (l, scale / (1.0 + l.sqrt()) + 0.3 * noise.next())).collect();
        let ends: Vec<_> = mid.iter().map(|m| (m.1 - 0.5, m.1 + 0.5)).collect();
        (mid, ends)
    };
    let ((a, a_ends), (b, b_ends)) = (line(9.0), line(6.5));
    let goodput = LinePlot::new("Goodput over loss")
        .note("Mean and 95 % interval of 30 seeds.")
        .x("loss", "%")
        .y("goodput", "Mbit/s")
        .log_x()
        .series("cmt", a)
        .band(a_ends)
        .dots()
        .series("sctp", b)
        .errors(b_ends)
        .dots()
        .width(400.0);
    let cloud = |noise: &mut Noise, cx: f64, cy: f64| -> Vec<(f64, f64)> {
        (0..60).map(|_| (cx + cx * 0.3 * noise.next(), cy + cy * 0.4 * noise.next() * noise.next())).collect()
    };
    let scatter = LinePlot::new("Each run")
        .note("One mark for each seed.")
        .x("goodput", "Mbit/s")
        .y("spurious retransmissions", "")
        .points("cmt", cloud(noise, 7.5, 40.0))
        .points("sctp", cloud(noise, 4.5, 25.0))
        .points("cmt-qa", cloud(noise, 6.5, 12.0))
        .width(400.0);
    [goodput, scatter]
}

fn main() -> Result<(), ReportError> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".to_owned());
    let mut noise = Noise(RandomStream::named(1, "sample"));
    let runs = ["wlan", "3g", "round_robin", "best"];
    let table = Table::new("")
        .text("run")
        .number("frames", "", 0)
        .number("unusable", "", 0)
        .number("share", "%", 2)
        .number("I", "", 0)
        .number("P", "", 0)
        .number("B", "", 0)
        .number("media", "Mbit/s", 2)
        .number("on the wire", "MB", 1)
        .row(("wlan", 450, 141, 31.33, 4, 52, 85, 5.61, 10.6))
        .row(("3g", 450, 248, 55.11, 9, 96, 143, 3.68, 7.0))
        .row(("round_robin", 450, 38, 8.44, 1, 13, 24, 7.52, 14.9))
        .row(("best", 450, 6, 1.33, 0, 1, 5, 7.94, 15.2))
        .highlight();
    println!("{}", table.to_text());

    let share = BarPlot::new("Unusable frames", runs)
        .y("share of frames", "%", 1)
        .bars("", [31.33, 55.11, 8.44, 1.33])
        .errors([(29.0, 33.5), (51.0, 58.0), (7.0, 10.2), (0.8, 2.0)])
        .colors([0, 1, 3, 2])
        .width(400.0);
    let classes = BarPlot::new("Unusable by class", runs)
        .y("frames", "", 0)
        .bars("I", [4.0, 9.0, 1.0, 0.0])
        .bars("P", [52.0, 96.0, 13.0, 1.0])
        .bars("B", [85.0, 143.0, 24.0, 5.0])
        .stacked()
        .width(400.0);
    let grouped = BarPlot::new("Bytes per path", runs)
        .note("What each path carried, with everything that SCTP adds.")
        .y("bytes", "MB", 1)
        .bars("wlan", [10.6, f64::NAN, 7.4, 10.1])
        .bars("3g", [f64::NAN, 7.0, 7.5, 5.1])
        .height(170.0);
    let policies = BarPlot::new(
        "Mean time of a decision",
        ["round_robin", "weighted_round_robin", "min_rtt", "confluent", "delay_compensation(confluent)"],
    )
    .y("time", "ns", 0)
    .bars("", [4.0, 9.0, 7.0, 96.0, 158.0])
    .errors([(3.0, 5.0), (8.0, 10.0), (6.0, 8.0), (88.0, 109.0), (140.0, 171.0)])
    .emphasize(4)
    .horizontal();

    let rate = rate_plot(&mut noise);
    let [goodput, scatter] = sweep_plots(&mut noise);
    let control = Table::new("Idle emulator")
        .text("path")
        .number("packets", "", 0)
        .number("lost", "", 0)
        .number("delay error p99", "ms", 2)
        .row(("wlan", 12_000, 0, 0.41))
        .row(("3g", 12_000, 0, 0.44));
    let page = Page::new("One live video over two networks")
        .lead("15 s of an 8 Mbit/s H.264 stream at a latency of 300 ms, over an emulated WLAN (6 Mbit/s, 30 ms, 0.1 % loss) and 3G (4 Mbit/s, 160 ms). Sample numbers, not measured.")
        .verdict(Verdict::pass("Control ok: nothing lost, delay error p99 0.44 ms"))
        .facts(&[
            Fact::new("unusable frames with both paths (best)", 1.33, 2, "%").star(),
            Fact::new("with WLAN alone", 31.33, 2, "%"),
            Fact::new("with 3G alone", 55.11, 2, "%"),
            Fact::new("take-over after the cut", 212.0, 0, "ms"),
        ])
        .section(Section::new("Runs").paragraph("A frame is unusable when any part of it is missing at play-out. Every run sends the same clip with the same latency.").table(&table).plots(&[&share, &classes]))
        .section(Section::new("Both paths over time").plot(&rate).plot(&unusable_plot(&mut noise)).plot(&delay_plot(&mut noise)))
        .section(Section::new("What each path carried").plot(&grouped))
        .section(Section::new("Sweeps").plots(&[&goodput, &scatter]).plot(&policies).verdict(&Verdict::warn("2 of 30 seeds ended early")))
        .section(
            Section::new("Control")
                .paragraph("Before the runs the idle emulator is measured. A control that fails makes every number above doubtful.")
                .table(&control)
                .details_json("summary.json", &serde_json::json!({"control": {"ok": true, "loss": 0.0}, "best": "live", "seed": 1}))?,
        )
        .footer("anabranch 0.1.0 · seed 1 · sample data");
    page.write_to(&path)?;
    println!("wrote {path}");
    if let Some(folder) = std::env::args().nth(2) {
        write_atomically(format!("{folder}/rate.svg"), rate.to_svg().as_bytes())?;
    }
    Ok(())
}
