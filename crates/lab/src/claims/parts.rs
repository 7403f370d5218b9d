//! Claims that say several things at once: all of them must hold.

use super::{Claim, OneOrMany};
use serde_json::{Map, Value};

/// What a part of another kind takes from its claim.
const COMMON: [&str; 6] = ["id", "says", "scenario", "metric", "at", "each"];

impl Claim {
    /// The claim itself without the rest, then each of `and` as a claim of its own. What one of those does not mention is
    /// as in the claim; one of another kind takes only where to look from it.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub(super) fn parts(&self) -> Result<Vec<Claim>, String> {
        let first = Claim { and: Vec::new(), ..self.clone() };
        let others = first.with(&self.and, "and")?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// The claim itself without the others of which one is enough, then each of `any` as a claim of its own, by the rules
    /// of [`parts`](Claim::parts).
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub(super) fn alternatives(&self) -> Result<Vec<Claim>, String> {
        let first = Claim { any: Vec::new(), ..self.clone() };
        let others = first.with(&self.any, "any")?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// The claim with other keys, once for each entry of `field`.
    fn with(&self, entries: &[Map<String, Value>], field: &str) -> Result<Vec<Claim>, String> {
        let mut whole = match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        whole.remove("conditional");
        let one = |own: &Map<String, Value>| {
            let mut part = whole.clone();
            if own.contains_key("kind") {
                part.retain(|key, _| COMMON.contains(&key.as_str()));
            }
            part.extend(own.clone());
            serde_json::from_value(Value::Object(part)).map_err(|e| format!("`{field}`: {e}"))
        };
        entries.iter().map(one).collect()
    }

    /// Before what a step is about, where the parts of a claim do not speak of one thing.
    pub(super) fn prefix(&self, of: &[Claim]) -> String {
        let metric = |c: &Claim| c.metric.clone().unwrap_or_default();
        let differ = of.iter().any(|c| c.metric != self.metric);
        if differ { format!("{}: ", metric(self)) } else { String::new() }
    }

    /// Before what a step is about, of one of several claims of which one is enough.
    pub(super) fn which(&self) -> String {
        let metric = self.metric.as_deref().unwrap_or_default();
        let beside = self.compare.as_ref().map(|c| format!(" of {} beside {}", c.a, c.b)).unwrap_or_default();
        format!("{metric}{beside}: ")
    }

    /// How many scenarios it names; none when it speaks of all.
    pub(super) fn named(&self) -> &[String] {
        self.scenario.as_ref().map_or(&[][..], OneOrMany::all)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClaimFile, Kind};

    #[test]
    fn parts_take_what_they_do_not_mention() {
        let text = r#"
            [[claim]]
            id = "A"
            says = "linear is lower"
            kind = "ordering"
            scenario = "s"
            metric = "a.delay"
            key = "group"
            order = ["standard", "linear"]
            and = [{ metric = "a.delay-max", median-of-maxima = true }, { kind = "bound", at = { group = "x" }, above = 1 }]
        "#;
        let file: ClaimFile = toml::from_str(text).expect("claims");
        let parts = file.claims[0].parts().expect("parts");
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[1].metric.as_deref(), parts[1].order.len()), (Some("a.delay-max"), 2));
        assert!(parts[1].median_of_maxima && !parts[0].median_of_maxima);
        assert_eq!((parts[2].kind, parts[2].order.len(), parts[2].above), (Kind::Bound, 0, Some(1.0)));
        assert_eq!(parts[2].metric.as_deref(), Some("a.delay"));
        assert_eq!(parts[1].prefix(&parts), "a.delay-max: ");
        let wrong: ClaimFile = toml::from_str(&text.replace("median-of", "mean-of")).expect("claims");
        assert!(wrong.claims[0].parts().unwrap_err().starts_with("`and`: unknown field `mean-of-maxima`"));
    }
}
