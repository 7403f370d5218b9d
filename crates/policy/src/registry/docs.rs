//! The page `docs/ALGORITHMS.md`, written from the registry.

use super::{Hook, ParamInfo, Profile, Value};
use core::fmt::Write;

/// The page: profiles, then every hook with its policies and their parameters.
pub fn algorithms_markdown() -> String {
    let mut out = String::from(
        "# Algorithms\n\nEvery policy that can be chosen by name, written from the registry by a test \
         (`UPDATE=1 cargo test -p anabranch-policy`). A policy is chosen as `name` or `name:parameter=value,...`.\n",
    );
    profiles(&mut out);
    for hook in Hook::ALL {
        // Writing to a String cannot fail.
        let _ = write!(out, "\n## {}\n\nDecides {}.\n", hook.name(), hook.decides());
        for p in hook.policies() {
            let _ = write!(
                out,
                "\n### `{}`\n\n{}\n\n- Source: {}\n- File: `{}`\n",
                p.name,
                p.summary,
                p.source,
                p.file.replace('\\', "/"),
            );
            if !p.params.is_empty() {
                out.push_str("\n| parameter | default | unit | range | meaning |\n|---|---|---|---|---|\n");
                p.params.iter().for_each(|q| row(&mut out, q));
            }
        }
    }
    out
}

fn row(out: &mut String, q: &ParamInfo) {
    let range = match q.default {
        Value::Word(_) => q.words.join(", "),
        Value::Number(_) => format!("{} to {}", q.min, q.max),
    };
    let _ = writeln!(out, "| `{}` | {} | {} | {range} | {} |", q.name, q.default, q.unit, q.meaning);
}

fn profiles(out: &mut String) {
    out.push_str("\n## Profiles\n\nWhat a profile does not list is as in `sctp`.\n");
    let base = Profile::named("sctp");
    for (name, summary) in Profile::summaries() {
        let _ = write!(out, "\n### `{name}`\n\n{summary}\n\n");
        let (Ok(profile), Ok(base)) = (Profile::named(name), &base) else { continue };
        for hook in Hook::ALL {
            if name == "sctp" || profile.spec(hook) != base.spec(hook) {
                let _ = writeln!(out, "- {}: `{}`", hook.name(), profile.spec(hook));
            }
        }
    }
}
