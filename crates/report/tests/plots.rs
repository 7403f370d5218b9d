//! Small plots byte by byte, and odd input that must still give a drawing.

mod common;

use anabranch_report::{BarPlot, BoxPlot, BoxStats, HeatMap, LinePlot, Plot};

/// Text of all tool tips.
fn titles(svg: &str) -> Vec<String> {
    svg.split("<title>").skip(1).filter_map(|s| s.split_once("</title>")).map(|s| s.0.to_owned()).collect()
}

fn coordinates_are_sane(svg: &str) {
    let elements = common::parse(svg).unwrap_or_else(|e| panic!("{e}\n{svg}"));
    for value in elements.iter().flat_map(|e| &e.1).filter(|a| a.0 != "aria-label").map(|a| &a.1) {
        assert!(!value.contains("NaN") && !value.contains("inf") && !value.contains("-0z"), "{value}");
    }
}

#[test]
fn a_line_plot_byte_by_byte() {
    let plot = LinePlot::new("Rate")
        .x("time", "s")
        .y("rate", "Mbit/s")
        .series("wlan", [(0.0, 1.0), (2.0, 4.0)])
        .span(0.5, 1.0, "cut");
    assert_eq!(plot.width(240.0).height(60.0).inline_svg(), include_str!("expected/line.svg").trim_end());
}

#[test]
fn a_bar_plot_byte_by_byte() {
    let plot = BarPlot::new("Bytes", ["a", "b"]).y("bytes", "MB", 1).bars("", [1.0, 2.5]).errors([(0.5, 1.5)]);
    assert_eq!(plot.width(240.0).height(60.0).inline_svg(), include_str!("expected/bars.svg").trim_end());
}

#[test]
fn a_file_of_its_own_carries_style_and_size() {
    let svg = LinePlot::new("a").series("b", [(0.0, 1.0), (1.0, 1.0)]).to_svg();
    let elements = common::parse(&svg).unwrap();
    let root = &elements[0];
    assert_eq!(root.0, "svg");
    assert!(root.1.contains(&("xmlns".into(), "http://www.w3.org/2000/svg".into())));
    assert!(root.1.contains(&("width".into(), "744".into())));
    assert!(elements.iter().any(|e| e.0 == "style") && svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn odd_numbers_make_gaps_not_garbage() {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e308, -1e308, 5e-324, 1.0];
    let points: Vec<(f64, f64)> = odd.iter().flat_map(|&x| odd.iter().map(move |&y| (x, y))).collect();
    let ends: Vec<(f64, f64)> = points.iter().rev().copied().collect();
    let plot = LinePlot::new("odd")
        .series("line", &points)
        .band(&ends)
        .errors(&ends)
        .series("steps", &points)
        .steps()
        .band(&ends)
        .points("points", &points)
        .errors(&ends)
        .span(f64::NAN, 1.0, "never")
        .span(f64::NEG_INFINITY, f64::INFINITY, "always")
        .marker(f64::NAN, "never")
        .limit(f64::INFINITY, "never");
    for plot in [plot.clone(), plot.clone().log_x().log_y(), plot.x_range(0.2, 0.9).y_range(-5.0, -4.0)] {
        coordinates_are_sane(&plot.to_svg());
    }
    let bars = BarPlot::new("odd", odd.iter().map(f64::to_string)).bars("a", odd).bars("b", odd).errors(&ends);
    for bars in [bars.clone(), bars.clone().stacked(), bars.clone().horizontal(), bars.y_max(f64::NAN)] {
        coordinates_are_sane(&bars.to_svg());
    }
}

#[test]
fn empty_plots_say_so() {
    for plot in [LinePlot::new(""), LinePlot::new("").series("a", []), LinePlot::new("").series("a", [(f64::NAN, 1.0)])]
    {
        let svg = plot.to_svg();
        coordinates_are_sane(&svg);
        assert!(svg.contains(">no data</text>"));
    }
    for bars in [BarPlot::new("", [""; 0]), BarPlot::new("", ["a"]), BarPlot::new("", [""; 0]).bars("x", [1.0])] {
        coordinates_are_sane(&bars.to_svg());
        coordinates_are_sane(&bars.horizontal().to_svg());
    }
}

#[test]
fn a_long_series_stays_small_and_keeps_its_peak() {
    let points: Vec<(f64, f64)> =
        (0..200_000).map(|i| (f64::from(i), if i == 123_456 { 50.0 } else { f64::from(i % 10) })).collect();
    let svg = LinePlot::new("long").series("a", &points).inline_svg();
    assert!(svg.len() < 80_000, "{}", svg.len());
    coordinates_are_sane(&svg);
    assert!(titles(&svg).iter().any(|t| t.contains("0 to 50")), "the peak is in a tool tip");
}

#[test]
fn tool_tips_tell_all_series_at_their_place() {
    let svg = LinePlot::new("a")
        .x("time", "s")
        .y("rate", "Mbit/s")
        .series("wlan", [(0.0, 1.0), (1.0, 2.0)])
        .series("3g", [(0.0, 3.0), (1.0, f64::NAN)])
        .span(0.9, 2.0, "cut")
        .inline_svg();
    assert_eq!(titles(&svg), ["cut", "time 0 s\nwlan: 1 Mbit/s\n3g: 3 Mbit/s", "time 1 s\nwlan: 2 Mbit/s\ncut"]);
    let dots = LinePlot::new("").series("a", [(1.0, 2.0)]).errors([(1.5, 2.5)]).dots().inline_svg();
    assert_eq!(titles(&dots), ["a\n1\n2 [1.5, 2.5]"]);
}

#[test]
fn values_outside_a_fixed_range_are_cut_off() {
    let inside = LinePlot::new("").series("a", [(0.0, 1.0), (1.0, 2.0)]);
    assert!(!inside.inline_svg().contains("overflow"));
    assert!(inside.y_range(0.0, 1.5).inline_svg().contains("overflow=\"hidden\""));
}

#[test]
fn stacked_bars_add_up_and_missing_ones_show_a_dash() {
    let bars = BarPlot::new("", ["x", "y"]).y("", "", 0).bars("a", [1.0, f64::NAN]).bars("b", [2.0, 4.0]);
    let values = |svg: &str| -> Vec<String> {
        let texts = svg.split("<text class=\"value\"").skip(1);
        texts.filter_map(|t| t.split_once('>')?.1.split_once('<')).map(|t| t.0.to_owned()).collect()
    };
    assert_eq!(values(&bars.inline_svg()), ["1", "2", "\u{2013}", "4"]);
    assert_eq!(values(&bars.stacked().inline_svg()), ["3", "4"]);
}

fn a_box(low: f64, high: f64, outliers: &[f64]) -> Option<BoxStats> {
    let at = |share: f64| low + (high - low) * share;
    Some(BoxStats { low, q1: at(0.25), median: at(0.5), q3: at(0.75), high, outliers: outliers.to_vec() })
}

#[test]
fn a_box_plot_byte_by_byte() {
    let plot =
        BoxPlot::new("Delay", ["a", "b"]).x("sender").y("delay", "ms").boxes("", [a_box(1.0, 5.0, &[9.0]), None]);
    assert_eq!(plot.width(240.0).height(60.0).inline_svg(), include_str!("expected/boxes.svg").trim_end());
}

#[test]
fn a_map_byte_by_byte() {
    let names = |all: &[&str]| all.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let values = vec![vec![1.0, 2.0], vec![f64::NAN, 4.0]];
    let plot = HeatMap::new("Rate", names(&["1%", "3%"]), names(&["10ms", "50ms"]), values)
        .axes("loss", "delay")
        .z("rate", "Mbit/s", 1)
        .width(260.0);
    assert_eq!(plot.inline_svg(), include_str!("expected/heat.svg").trim_end());
}

#[test]
fn odd_boxes_and_cells_are_left_out() {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e308, -1e308, 5e-324, 1.0, 1e6];
    let boxes: Vec<Option<BoxStats>> =
        odd.iter().flat_map(|a| odd.iter().map(|b| a_box(*a, *b, &odd))).chain([None]).collect();
    let names: Vec<String> = (0..boxes.len()).map(|i| i.to_string()).collect();
    let plot = BoxPlot::new("odd", names.clone()).boxes("a", boxes.clone()).boxes("b", boxes);
    for plot in [plot.clone(), plot.clone().log_y(), plot.y_ends(Some(-4.0), None)] {
        coordinates_are_sane(&plot.to_svg());
    }
    let rows: Vec<Vec<f64>> = odd.iter().map(|_| odd.to_vec()).collect();
    let names: Vec<String> = odd.iter().map(f64::to_string).collect();
    let map = HeatMap::new("odd", names.clone(), names, rows);
    for map in [map.clone(), map.clone().log_z(), map.clone().z_ends(None, Some(0.5)), map.width(240.0)] {
        coordinates_are_sane(&map.to_svg());
    }
    for svg in [
        BoxPlot::new("", [""; 0]).to_svg(),
        BoxPlot::new("", ["a"]).boxes("b", [None]).to_svg(),
        HeatMap::new("", Vec::new(), Vec::new(), Vec::new()).to_svg(),
    ] {
        coordinates_are_sane(&svg);
        assert!(svg.contains(">no data</text>"));
    }
}

/// A number in a cell is left out where it would run into the next one.
#[test]
fn numbers_of_cells_fit_them() {
    let names = |n: usize| (0..n).map(|i| format!("{i}")).collect::<Vec<_>>();
    let numbers = |columns: usize| {
        let svg = HeatMap::new("", names(columns), names(1), vec![vec![1234.5; columns]]).width(400.0).inline_svg();
        svg.matches(">1234.5</text>").count()
    };
    assert_eq!((numbers(3), numbers(40)), (3, 0));
}
