//! `anabranch policies`: everything that can be chosen by name.

use crate::exit::{Failure, Outcome, print};
use anabranch_net::Constants;
use anabranch_policy::registry::algorithms_markdown;
use anabranch_policy::{Hook, ParamInfo, PolicyInfo, Profile, Value, policies};
use serde::Serialize;
use std::collections::BTreeMap;

const EXAMPLES: &str = "\
Examples:
  anabranch policies
  anabranch policies -J | jq '.policies[] | select(.hook == \"window\")'
  anabranch policies --markdown > ALGORITHMS.md";

/// List profiles and policies with their parameters
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PoliciesArgs {
    /// As JSON
    #[arg(short = 'J', long, conflicts_with = "markdown")]
    pub json: bool,
    /// As a page in Markdown
    #[arg(long)]
    pub markdown: bool,
}

#[derive(Serialize)]
struct Listing {
    version: u32,
    profiles: Vec<ProfileRow>,
    policies: Vec<PolicyRow>,
}

#[derive(Serialize)]
struct ProfileRow {
    name: &'static str,
    summary: &'static str,
    choices: BTreeMap<&'static str, String>,
    constants: ConstantsRow,
}

/// What an association has with the profile unless it is named.
#[derive(Serialize)]
struct ConstantsRow {
    sack_delay_ms: u64,
    rto_max_ms: u64,
    heartbeat_interval_ms: u64,
    /// None counts errors (Association.Max.Retrans) instead.
    peer_timeout_ms: Option<u64>,
}

impl ConstantsRow {
    fn of(profile: &Profile) -> Self {
        let c = Constants::of(profile);
        ConstantsRow {
            sack_delay_ms: c.sack_delay.as_millis(),
            rto_max_ms: c.rto_max.as_millis(),
            heartbeat_interval_ms: c.heartbeat_interval.as_millis(),
            peer_timeout_ms: c.peer_timeout.map(|t| t.as_millis()),
        }
    }

    fn text(&self) -> String {
        let peer = self.peer_timeout_ms.map_or("counted".into(), |t| format!("{t} ms"));
        let (sack, rto, heartbeat) = (self.sack_delay_ms, self.rto_max_ms, self.heartbeat_interval_ms);
        format!("SACK.Delay {sack} ms, RTO.Max {rto} ms, HB.interval {heartbeat} ms, peer timeout {peer}")
    }
}

#[derive(Serialize)]
struct PolicyRow {
    hook: &'static str,
    name: &'static str,
    source: &'static str,
    file: String,
    summary: &'static str,
    parameters: Vec<ParamRow>,
}

#[derive(Serialize)]
struct ParamRow {
    name: &'static str,
    default: serde_json::Value,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<&'static str>,
    meaning: &'static str,
}

impl ProfileRow {
    fn of((name, summary): (&'static str, &'static str)) -> Result<Self, Failure> {
        let profile = Profile::named(name).map_err(Failure::usage)?;
        let choices = Hook::ALL.into_iter().map(|h| (h.name(), profile.spec(h))).collect();
        Ok(ProfileRow { name, summary, choices, constants: ConstantsRow::of(&profile) })
    }
}

impl PolicyRow {
    fn of(p: &'static PolicyInfo) -> Self {
        PolicyRow {
            hook: p.hook.name(),
            name: p.name,
            source: p.source,
            file: p.file.replace('\\', "/"),
            summary: p.summary,
            parameters: p.params.iter().map(ParamRow::of).collect(),
        }
    }
}

impl ParamRow {
    fn of(p: &'static ParamInfo) -> Self {
        let (default, range) = match p.default {
            Value::Number(n) if p.whole => (serde_json::json!(n as i64), Some([p.min, p.max])),
            Value::Number(n) => (serde_json::json!(n), Some([p.min, p.max])),
            Value::Word(w) => (serde_json::json!(w), None),
        };
        ParamRow { name: p.name, default, unit: p.unit, range, words: p.words.to_vec(), meaning: p.meaning }
    }
}

fn listing() -> Result<Listing, Failure> {
    let profiles = Profile::summaries().map(ProfileRow::of).collect::<Result<_, _>>()?;
    Ok(Listing { version: 1, profiles, policies: policies().map(PolicyRow::of).collect() })
}

fn text(listing: &Listing) -> String {
    let mut out = String::from("Profiles (--profile NAME)\n");
    for p in &listing.profiles {
        out += &format!("  {:<22} {}\n  {:<22} {}\n", p.name, p.summary, "", p.constants.text());
    }
    for hook in Hook::ALL {
        out += &format!("\n{} (--set {}=NAME): {}\n", hook.name(), hook.name(), hook.decides());
        for p in listing.policies.iter().filter(|p| p.hook == hook.name()) {
            out += &format!("  {:<22} {} [{}]\n", p.name, p.summary, p.source);
            for q in &p.parameters {
                let unit = if q.unit.is_empty() { String::new() } else { format!(" {}", q.unit) };
                let default = q.default.to_string();
                out += &format!("      {}={}{unit}: {}\n", q.name, default.trim_matches('"'), q.meaning);
            }
        }
    }
    out
}

/// Runs the command.
pub fn run(args: &PoliciesArgs) -> Outcome {
    let out = if args.markdown {
        algorithms_markdown()
    } else if args.json {
        serde_json::to_string_pretty(&listing()?).map_err(Failure::network)? + "\n"
    } else {
        text(&listing()?)
    };
    print(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_policy_is_listed() {
        let listing = listing().unwrap();
        assert_eq!(listing.policies.len(), policies().count());
        let text = text(&listing);
        for p in policies() {
            assert!(text.contains(p.name) && text.contains(p.summary), "{}", p.name);
        }
    }
}
