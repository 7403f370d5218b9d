//! Figures of a scenario that has none of its own: each metric over the sweep, each series over time.

use crate::figures::{Figure, Style};
use crate::scenario::{Choice, Scenario, unit_of};

/// Most plots side by side.
const PANELS: usize = 4;

type Keys = [(String, Vec<String>)];

/// Empty for a scenario that says itself what is drawn.
pub(super) fn of(s: &Scenario) -> Vec<Figure> {
    if !s.figures.is_empty() {
        return Vec::new();
    }
    let keys = s.keys();
    let at = Fixed(s.chosen(Choice { quick: true, seeds: None }).map(|q| q.keys()).unwrap_or_default());
    let metrics = s.measures.iter().filter_map(|m| over_the_sweep(&m.name, &m.unit, &keys, &at));
    let series = s.series.iter().map(|n| over_time(&n.name, &keys, &at));
    let named = |f: Figure| Figure { scenario: Some(s.name.clone()), ..f };
    let mut all: Vec<Figure> = metrics.chain(series).map(named).collect();
    number(&mut all);
    all
}

/// Where keys stay that a figure has no room for: the first value that the quick form runs as well.
struct Fixed(Vec<(String, Vec<String>)>);

impl Fixed {
    fn set(&self, f: &mut Figure, (key, values): &(String, Vec<String>)) {
        let quick = self.0.iter().find(|k| k.0 == *key).and_then(|k| k.1.first());
        if let Some(value) = quick.or(values.first()) {
            f.at.insert(key.clone(), value.clone());
        }
    }

    /// Names them below the figure, where there was a choice.
    fn tell(f: &mut Figure, keys: &Keys) {
        let choice = |k: &&(String, Vec<String>)| k.1.len() > 1;
        let named = keys.iter().filter(choice).filter_map(|(k, _)| Some(format!("{k} {}", f.at.get(k)?)));
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            f.note = Some(format!("At {}.", named.join(", ")));
        }
    }
}

/// Names become files: a metric and a series may be called alike, and letters that files cannot have are all one.
pub(super) fn number(figures: &mut [Figure]) {
    for i in 0..figures.len() {
        let (before, rest) = figures.split_at_mut(i);
        let Some(f) = rest.first_mut() else { continue };
        let taken = |name: &str| before.iter().any(|b| b.name == name);
        if taken(&f.name) {
            let own = f.name.clone();
            let free = (2..).map(|n| format!("{own}-{n}")).find(|name| !taken(name));
            f.name = free.unwrap_or(own);
        }
    }
}

/// A metric over the first key of several values, a line for each value of the second, a plot for each of the next one
/// that has few; at one value of the others. None where nothing is swept.
fn over_the_sweep(metric: &str, unit: &str, keys: &Keys, at: &Fixed) -> Option<Figure> {
    let mut swept = keys.iter().filter(|k| k.1.len() > 1);
    let (x, values) = swept.next()?;
    // Lines between names of policies would say that there is something in between.
    let numbers = values.iter().all(|v| v.starts_with(|c: char| c.is_ascii_digit()));
    let mut f = empty(metric, if numbers { Style::Line } else { Style::Bars }, unit);
    f.x = x.clone();
    f.series = swept.next().map(|k| k.0.clone());
    f.panels = swept.find(|k| k.1.len() <= PANELS).map(|k| k.0.clone());
    for key in keys {
        if key.0 != f.x && ![&f.series, &f.panels].contains(&&Some(key.0.clone())) {
            at.set(&mut f, key);
        }
    }
    Fixed::tell(&mut f, keys);
    Some(f)
}

/// A series over time, a plot for each value of the first key, at one value of the others.
fn over_time(name: &str, keys: &Keys, at: &Fixed) -> Figure {
    let mut f = empty(name, Style::Series, unit_of(name).unwrap_or_default());
    for (i, key) in keys.iter().enumerate() {
        if i == 0 && key.1.len() <= PANELS {
            f.panels = Some(key.0.clone());
        } else {
            at.set(&mut f, key);
        }
    }
    Fixed::tell(&mut f, keys);
    f
}

fn empty(metric: &str, kind: Style, unit: &str) -> Figure {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    Figure {
        name: metric.chars().map(plain).collect(),
        title: metric.to_owned(),
        kind,
        unit: (unit == "bit/s").then(|| "Mbit/s".to_owned()),
        metric: Some(metric.to_owned()),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEPT: &str = r#"
name = "swept"
duration = "3s"
seeds = 2
metrics = ["main.goodput", "main.timeouts"]
series = ["main.cwnd"]
[topology]
kind = "single-path"
rate = "4mbit"
delay = "10ms"
[[flow]]
name = "main"
transport = "sctp"
[[sweep]]
name = "rate"
sets = "topology.rate"
values = ["1mbit", "4mbit"]
[[sweep]]
name = "profile"
sets = "flow.main.profile"
values = ["sctp", "live"]
"#;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("swept.toml", text, &|_| Err(String::new())).unwrap()
    }

    #[test]
    fn metrics_are_drawn_over_the_sweep_and_series_over_time() {
        let s = scenario(SWEPT);
        let figures = of(&s);
        let kinds: Vec<Style> = figures.iter().map(|f| f.kind).collect();
        assert_eq!(kinds, [Style::Line, Style::Line, Style::Series]);
        assert_eq!((figures[0].x.as_str(), figures[0].series.as_deref()), ("rate", Some("profile")));
        assert_eq!(
            (figures[2].panels.as_deref(), figures[2].note.as_deref()),
            (Some("rate"), Some("At profile sctp."))
        );
        let one = SWEPT.split("[[sweep]]\nname = \"rate\"").collect::<Vec<_>>();
        let only_names = format!("{}[[sweep]]{}", one[0], one[1].split("[[sweep]]").nth(1).unwrap());
        assert_eq!(of(&scenario(&only_names))[0].kind, Style::Bars, "names have nothing between them");
        let none = SWEPT.split("[[sweep]]").next().unwrap();
        assert_eq!(of(&scenario(none)).iter().map(|f| f.kind).collect::<Vec<_>>(), [Style::Series], "a single point");
        let own = "\n[[figure]]\nname = \"f\"\ntitle = \"F\"\nkind = \"series\"\nmetric = \"main.cwnd\"\n";
        assert!(of(&scenario(&format!("{none}{own}"))).is_empty(), "it says itself what is drawn");
    }

    #[test]
    fn all_that_is_measured_is_drawn() {
        let metrics: Vec<String> = (1..=60).map(|p| format!("\"main.delay-p{p}\"")).collect();
        let text = SWEPT.replace("\"main.timeouts\"", &metrics.join(", "));
        assert_eq!(of(&scenario(&text)).len(), 62, "60 percentiles, the goodput and a series");
        // The third key has more values than plots fit side by side, the fourth fewer; the fifth has one.
        let more = "[[sweep]]\nname = \"delay\"\nsets = \"topology.delay\"\nvalues = [1, 2, 3, 4, 5]\nas = [\"1ms\", \
                    \"2ms\", \"3ms\", \"4ms\", \"5ms\"]\n[[sweep]]\nname = \"streams\"\nsets = \"flow.main.streams\"\n\
                    values = [1, 2]\n[[sweep]]\nname = \"length\"\nsets = \"duration\"\nvalues = [\"3s\"]\n";
        let figures = of(&scenario(&format!("{SWEPT}{more}")));
        assert_eq!(figures.len(), 3);
        let f = &figures[0];
        let keys = (f.x.as_str(), f.series.as_deref(), f.panels.as_deref());
        assert_eq!(keys, ("rate", Some("profile"), Some("streams")));
        assert_eq!((f.at.len(), f.note.as_deref()), (2, Some("At delay 1.")));
        assert_eq!(figures[2].note.as_deref(), Some("At profile sctp, delay 1, streams 1."));
        // What the quick form does not run would leave its figures empty.
        let quick = format!("{SWEPT}{more}[quick.sweep]\ndelay = [3, 5]\n");
        assert_eq!(of(&scenario(&quick))[0].at.get("delay").map(String::as_str), Some("3"));
        // A first key of one value is no axis.
        let one = SWEPT.replace("\"1mbit\", \"4mbit\"", "\"1mbit\"");
        assert_eq!((of(&scenario(&one)).len(), of(&scenario(&one))[0].x.as_str()), (3, "profile"));
    }

    #[test]
    fn a_metric_and_a_series_of_one_name_have_files_of_their_own() {
        let text = SWEPT.replace("\"main.goodput\"", "\"main.share\"").replace("\"main.cwnd\"", "\"main.share\"");
        let names: Vec<String> = of(&scenario(&text)).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["main.share", "main.timeouts", "main.share-2"]);
    }

    #[test]
    fn they_fit_their_scenario() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("swept.toml");
        std::fs::write(&path, SWEPT).unwrap();
        let e = super::super::Experiment::load(&path).unwrap();
        assert_eq!(e.about.figures.len(), 3);
    }
}
