//! What the user set: a TOML file, a file of `name=value` lines, and variables of the environment.

use crate::socket::Settings;

/// Defaults, then the TOML file that ANABRANCH_CONFIG names, then the file that ANABRANCH_SETTINGS names and
/// ANABRANCH_SET, `name=value` by lines or commas, then ANABRANCH_LOCAL, ANABRANCH_PROFILE and ANABRANCH_TRANSPORT.
///
/// In virtual time a mistake is reported and passed over: the suites set names of kernels that have no meaning here.
/// With real packets it ends the process.
pub fn read(lenient: bool) -> Settings {
    let mut s = if lenient { Settings::default() } else { Settings::outward() };
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let read = |path: &str| match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) => {
            complain(lenient, &format!("cannot read {path}: {e}"));
            String::new()
        }
    };
    if let Some(path) = variable("ANABRANCH_CONFIG")
        && let Err(what) = apply_toml(&mut s, &read(&path))
    {
        complain(lenient, &format!("{path}: {what}"));
    }
    let file = variable("ANABRANCH_SETTINGS").map(|p| read(&p)).unwrap_or_default();
    let text = [file, variable("ANABRANCH_SET").unwrap_or_default()].join("\n");
    let own = ["local", "profile", "transport"];
    let own = own.map(|name| (name, variable(&format!("ANABRANCH_{}", name.to_uppercase()))));
    let own = own.iter().filter_map(|(name, v)| v.as_deref().map(|v| (*name, v)));
    for (name, value) in assignments(&text).chain(own) {
        if !s.set(name, value) {
            complain(lenient, &refused(name, value));
        }
    }
    s
}

/// Why a setting was not taken: its value, where it is known to be that.
fn refused(name: &str, value: &str) -> String {
    let short = name.rsplit('.').next().unwrap_or(name);
    match (short, anabranch_policy::registry::Profile::named(value)) {
        ("profile", Err(e)) => e.to_string(),
        ("transport", _) => format!("transport={value} is none; there are udp and raw"),
        // A value that any number would replace.
        _ if Settings::default().set(name, "1") => format!("{name}={value}: that value does not fit"),
        _ => format!("unknown setting {name}={value}"),
    }
}

fn complain(lenient: bool, what: &str) {
    eprintln!("anabranch: {what}");
    if !lenient {
        std::process::exit(2);
    }
}

/// The settings of a TOML file; its tables are there for order only, but a key has to be one of ours.
///
/// # Errors
/// What is wrong, in one line.
fn apply_toml(s: &mut Settings, text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.message().to_owned())?;
    for (name, value) in &table {
        let value = match value {
            toml::Value::String(v) => v.clone(),
            toml::Value::Integer(v) => v.to_string(),
            toml::Value::Boolean(v) => u8::from(*v).to_string(),
            toml::Value::Array(list) => {
                let names: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
                names.ok_or_else(|| format!("{name} is a list of names"))?.join(",")
            }
            _ => return Err(format!("{name} is no setting")),
        };
        if !s.set(name, &value) {
            return Err(refused(name, &value));
        }
    }
    Ok(())
}

/// `name=value` pairs, a comment behind `#`.
pub fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(|l| l.split('#').next().unwrap_or(l));
    let words = lines.flat_map(|l| l.split([',', ' ', '\t', ';']));
    words.filter_map(|w| w.split_once('=')).filter(|(n, v)| !n.is_empty() && !v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_the_environment_says() {
        let mut s = Settings::outward();
        let text = "profile = \"cmt\"\nlocal = [\"10.0.0.1\", \"wlan0\"]\nrto_min = 200\nreconfig_enable = true";
        apply_toml(&mut s, text).unwrap();
        assert_eq!(
            (s.profile.as_str(), s.local.as_slice()),
            ("cmt", ["10.0.0.1", "wlan0"].map(String::from).as_slice())
        );
        assert!(s.stream_reset && s.rto_min.as_millis() == 200);
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (text, complaint) in [
            ("profil = \"cmt\"", "unknown setting profil=cmt"),
            ("rto_min = \"soon\"", "rto_min=soon: that value does not fit"),
            ("transport = \"tcp\"", "transport=tcp is none; there are udp and raw"),
            ("[paths]\na = 1", "paths is no setting"),
            ("local = [1]", "local is a list of names"),
        ] {
            assert_eq!(apply_toml(&mut Settings::outward(), text), Err(complaint.to_owned()));
        }
        let near = apply_toml(&mut Settings::outward(), "profile = \"lowlatenci\"").expect_err("no such profile");
        assert!(near.contains("'lowlatenci'") && near.contains("did you mean 'low-latency'?"), "{near}");
        assert!(apply_toml(&mut Settings::outward(), "profile = ").is_err_and(|e| !e.contains('\n')));
    }
}
