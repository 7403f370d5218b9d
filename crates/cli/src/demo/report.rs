//! `report.html`: everything a reader wants to see, in one file.

use super::outcome::Outcome;
use super::plan::{LATENCY, NETWORKS, Network, SINGLE_PROFILE};
use super::summary::{Judgement, Summary};
use super::table;
use crate::exit::Failure;
use anabranch_report::{BarPlot, Fact, LinePlot, Page, Plot, Section, Verdict};

/// Width of a plot that has a neighbour.
const HALF: f64 = 400.0;

/// Colours of the four runs, the same in every plot.
fn colour(run: &str) -> usize {
    match run {
        "wlan" => 0,
        "3g" => 1,
        "best" => 2,
        "round_robin" => 3,
        _ => 4,
    }
}

/// The page.
///
/// # Errors
/// A summary without a JSON form.
pub fn page(summary: &Summary) -> Result<String, Failure> {
    let title = "One live video over two networks";
    let (judgement, text) = summary.judge();
    let verdict = match judgement {
        Judgement::Pass => Verdict::pass(text),
        Judgement::Weak => Verdict::warn(text),
        Judgement::Fail => Verdict::fail(text),
        Judgement::None => Verdict::info(text),
    };
    let mut page = Page::new(title).lead(lead(summary)).verdict(verdict);
    if !summary.runs.is_empty() {
        page = page.facts(&facts(summary)).section(runs(summary)).section(over_time(summary)).section(losses(summary));
    }
    let page = page.section(control(summary)).section(settings(summary)?);
    Ok(page.footer(footer(summary)).to_html())
}

fn lead(summary: &Summary) -> String {
    let networks = if summary.impairments {
        let names: Vec<String> = NETWORKS.iter().map(Network::sentence).collect();
        format!("emulated {}", names.join(" and "))
    } else {
        "two emulated networks without any impairment".to_owned()
    };
    let seconds = summary.runs.first().map_or(f64::from(summary.seconds), |r| r.seconds);
    let rate = summary
        .runs
        .first()
        .map_or(String::new(), |r| format!("{:.1} Mbit/s ", r.bytes_media as f64 * 8.0 / 1e6 / r.seconds.max(1e-9)));
    format!(
        "{seconds:.0} s of {rate}H.264 video at a latency of {} ms, from a sender to a receiver over {networks}. \
         Real sockets, one machine.",
        LATENCY.as_millis()
    )
}

fn facts(summary: &Summary) -> Vec<Fact> {
    let label = |run: &Outcome| match NETWORKS.iter().find(|n| n.name == run.name) {
        Some(network) => format!("unusable, {} alone", network.title),
        None => format!("unusable, {}", run.name),
    };
    let fact = |run: &Outcome| {
        let fact = Fact::new(label(run), 100.0 * run.unusable_share(), 2, "%");
        if run.name == "best" { fact.star() } else { fact }
    };
    let (best, others): (Vec<_>, Vec<_>) = summary.runs.iter().partition(|r| r.name == "best");
    best.into_iter().chain(others).map(fact).collect()
}

fn runs(summary: &Summary) -> Section {
    let names = || summary.runs.iter().map(|r| r.name.clone());
    let colours: Vec<usize> = summary.runs.iter().map(|r| colour(&r.name)).collect();
    let shares: Vec<f64> = summary.runs.iter().map(|r| 100.0 * r.unusable_share()).collect();
    let share = BarPlot::new("Unusable frames", names())
        .y("share of frames", "%", 1)
        .bars("", shares)
        .colors(colours)
        .width(HALF);
    let class = |of: fn(&Outcome) -> u64| summary.runs.iter().map(|r| of(r) as f64).collect::<Vec<_>>();
    let classes = BarPlot::new("Unusable frames by class", names())
        .y("frames", "", 0)
        .bars("I", class(|r| r.frames_unusable_by_class.i))
        .bars("P", class(|r| r.frames_unusable_by_class.p))
        .bars("B", class(|r| r.frames_unusable_by_class.b))
        .stacked()
        .width(HALF);
    Section::new("Runs")
        .paragraph(format!(
            "A frame is unusable when any part of it is missing at its play-out. Every run sends the same stream at the \
             same latency; the networks lose the same packets in each. The runs over one network and best use the \
             profile {SINGLE_PROFILE}; round_robin uses plain concurrent multipath transfer. Rates of networks count \
             every byte that came out of them, IP headers included; overhead is what went onto the wire beyond the \
             media put out in time."
        ))
        .table(&table::frames(summary))
        .table(&table::rates(summary))
        .plots(&[&share, &classes])
        .plot(&unusable(summary))
}

fn unusable(summary: &Summary) -> LinePlot {
    let mut plot = LinePlot::new("Unusable frames over time")
        .note("Share of the frames that began in each second.")
        .x("media time", "s")
        .y("share of frames", "%")
        .y_range(0.0, 100.0)
        .height(210.0);
    for run in &summary.runs {
        let mut steps = run.curves.unusable.clone();
        // A step is drawn to the next point: the last second needs an end.
        if let Some((_, share)) = steps.last().copied() {
            steps.push((run.seconds, share));
        }
        plot = plot.series(&run.name, steps).color(colour(&run.name)).steps();
    }
    plot
}

fn over_time(summary: &Summary) -> Section {
    let section = Section::new("Rates and delays");
    delays(rates(section, summary), summary)
}

fn rates(mut section: Section, summary: &Summary) -> Section {
    let top = summary.runs.iter().flat_map(|r| r.curves.rates.iter().flatten()).map(|p| p.1).fold(1.0, f64::max);
    let plot = |run: &Outcome| {
        let mut plot = LinePlot::new(format!("Rate: {}", run.name))
            .x("media time", "s")
            .y("rate", "Mbit/s")
            .x_range(0.0, run.seconds)
            .y_range(0.0, top * 1.08)
            .width(HALF)
            .height(200.0);
        for (path, rate) in run.paths.iter().zip(&run.curves.rates) {
            plot = plot.series(&path.name, rate).color(colour(&path.name));
        }
        let marks = run.curves.notes.iter().filter_map(|n| Some((n.at.as_secs_f64(), n.mark.as_ref()?)));
        marks.fold(plot, |plot, (at, mark)| plot.marker(at, mark))
    };
    let limits: Vec<String> = NETWORKS.iter().map(|n| format!("{} carries {} Mbit/s", n.title, n.rate_mbit)).collect();
    if summary.impairments {
        section = section.paragraph(format!(
            "Rate: what came out at the receiver's end, over half a second. {}.",
            limits.join(", ")
        ));
    }
    side_by_side(section, summary.runs.iter().map(plot).collect())
}

fn delays(section: Section, summary: &Summary) -> Section {
    let plot = |run: &Outcome| {
        LinePlot::new(format!("Delay: {}", run.name))
            .x("media time", "s")
            .y("delay", "ms")
            .x_range(0.0, run.seconds)
            .y_range(0.0, LATENCY.as_millis_f64() * 1.3)
            .series("longest", &run.curves.delay_max)
            .color(3)
            .series("median", &run.curves.delay_median)
            .color(0)
            .limit(LATENCY.as_millis_f64(), format!("latency {} ms", LATENCY.as_millis()))
            .width(HALF)
            .height(200.0)
    };
    let section = section.paragraph(
        "Delay: from the sender's input to the arrival, of the packets that came in during each 100 ms. What arrives behind \
         the latency is of no use.",
    );
    side_by_side(section, summary.runs.iter().map(plot).collect())
}

fn losses(summary: &Summary) -> Section {
    let mut section = Section::new("What became of the packets")
        .paragraph(
            "The sender gives up what cannot arrive in time instead of sending it; a link drops what finds its queue \
             full and loses a packet now and then. Each packet of media travels in one packet on a link.",
        )
        .table(&table::packets(&summary.runs))
        .table(&table::links(&summary.runs));
    let notes: Vec<String> = summary
        .runs
        .iter()
        .flat_map(|run| {
            run.curves.notes.iter().map(|n| format!("{:>12} {:7.3} s  {}", run.name, n.at.as_secs_f64(), n.text))
        })
        .collect();
    if !notes.is_empty() {
        section = section.details(format!("What happened to paths ({} events)", notes.len()), notes.join("\n"));
    }
    section
}

fn control(summary: &Summary) -> Section {
    let overall = &summary.control.overall;
    let verdict = match &overall.reason {
        None => Verdict::pass("control ok"),
        Some(reason) => Verdict::fail(format!("control failed: {reason}")),
    };
    Section::new("Control")
        .paragraph(
            "Does this machine lose or delay packets by itself? Before the runs an idle emulator is measured; beside \
             each group of runs another one, on a path of its own. Fewer than 1 packet in 10,000 may be lost, and at \
             the 99th percentile the delay may be off by less than 5 ms.",
        )
        .verdict(&verdict)
        .table(&table::control(summary))
}

fn settings(summary: &Summary) -> Result<Section, Failure> {
    let links: Vec<String> = summary.networks.iter().map(|n| n.link.clone()).collect();
    let json = summary.to_json().map_err(|e| Failure::network(format!("the summary has no JSON form: {e}")))?;
    Ok(Section::new("Settings")
        .paragraph(format!(
            "Command: {}\n\nSeed {}. Latency {} ms. Each network works both ways at its rate, with its loss and its \
             queue; its delay is that towards the receiver, the way back takes less.",
            summary.command, summary.seed, summary.latency_ms
        ))
        .details("The links, in the words of anabranch emulate", links.join("\n"))
        .details("summary.json", json))
}

fn footer(summary: &Summary) -> String {
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!(
        "anabranch {} · seed {} · {} {} · {processors} processors",
        summary.anabranch,
        summary.seed,
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

fn side_by_side(section: Section, plots: Vec<LinePlot>) -> Section {
    plots.chunks(2).fold(section, |section, pair| {
        let pair: Vec<&dyn Plot> = pair.iter().map(|p| p as &dyn Plot).collect();
        section.plots(&pair)
    })
}
