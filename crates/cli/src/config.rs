//! Flags from a file: `--config FILE`, a TOML table with the names of the flags.
//!
//! They become arguments in front of those of the command line, so that a flag has one meaning, one parser and one
//! message wherever it stands. What the command line names itself is left out.

use crate::exit::Failure;
use crate::input::plain;
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::path::Path;
use toml::{Table, Value};

/// Commands whose flags may be set in a file. `emulate` reads a file of its own kind.
const COMMANDS: [&str; 3] = ["send", "recv", "tunnel"];

/// Two flags for one thing: what the command line says by one replaces what the file says by the other.
const TWINS: [(&str, &str); 1] = [("json", "stats")];

/// The arguments with those of the file put in.
pub fn expand(cli: &Command, args: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let Some(at) = args.iter().position(|a| COMMANDS.iter().any(|c| a == c)) else { return Ok(args) };
    let (before, after) = args.split_at(at + 1);
    let Some(file) = named(after, "config") else { return Ok(args) };
    let command = before.last().and_then(|c| c.to_str()).and_then(|c| cli.find_subcommand(c));
    let Some(command) = command else { return Ok(args) };
    let more = arguments(cli, command, &read(Path::new(&file))?, &file.to_string_lossy(), &args)?;
    Ok(before.iter().cloned().chain(more.into_iter().map(OsString::from)).chain(after.iter().cloned()).collect())
}

/// The file as a table.
pub fn read(file: &Path) -> Result<Table, Failure> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("cannot read {}: {}", file.display(), plain(&e))))?;
    text.parse::<Table>().map_err(|e| {
        let line = e.span().and_then(|s| text.get(..s.start)).map_or(1, |before| before.matches('\n').count() + 1);
        wrong(format!("line {line}: {}", e.message()))
    })
}

/// The values of one key, as texts: a list has several.
pub fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(s) => Some(vec![s.clone()]),
        Value::Integer(n) => Some(vec![n.to_string()]),
        Value::Array(all) => {
            all.iter().map(|v| texts(v).filter(|t| t.len() == 1)).collect::<Option<Vec<_>>>().map(|t| t.concat())
        }
        _ => None,
    }
}

/// The value of a flag among arguments.
fn named(args: &[OsString], flag: &str) -> Option<OsString> {
    let long = format!("--{flag}");
    let joined = format!("{long}=");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if *arg == *long {
            return args.next().cloned();
        }
        if let Some(value) = arg.to_str().and_then(|a| a.strip_prefix(&joined)) {
            return Some(value.into());
        }
    }
    None
}

fn arguments(
    cli: &Command,
    command: &Command,
    table: &Table,
    file: &str,
    given: &[OsString],
) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for (key, value) in table {
        let name = key.replace('_', "-");
        let wrong = |what: &str| Failure::usage(format!("{file}: `{key}` {what}"));
        let globals = cli.get_arguments().filter(|a| a.is_global_set());
        let arg = command.get_arguments().chain(globals).find(|a| a.get_long() == Some(&name) && name != "config");
        let arg = arg.ok_or_else(|| wrong(&format!("is no flag of `{}`", command.get_name())))?;
        let twin = TWINS.iter().find_map(|(a, b)| if *a == name { Some(*b) } else { (*b == name).then_some(*a) });
        let twin = twin.and_then(|t| Some((command.get_arguments().find(|a| a.get_long() == Some(t))?, t)));
        if is_given(arg, &name, given) || twin.is_some_and(|(arg, name)| is_given(arg, name, given)) {
            continue;
        }
        let counts = matches!(arg.get_action(), ArgAction::Count);
        let switch = counts || matches!(arg.get_action(), ArgAction::SetTrue);
        match value {
            Value::Boolean(on) if switch => all.extend(on.then(|| format!("--{name}"))),
            Value::Integer(n @ 0..=9) if counts => all.extend((0..*n).map(|_| format!("--{name}"))),
            _ if counts => return Err(wrong("is true, false, or a number from 0 to 9")),
            _ if switch => return Err(wrong("is true or false")),
            value => {
                let values = texts(value).ok_or_else(|| wrong("needs a text, a whole number, or a list of them"))?;
                all.extend(values.iter().map(|v| format!("--{name}={v}")));
            }
        }
    }
    Ok(all)
}

fn is_given(arg: &Arg, name: &str, given: &[OsString]) -> bool {
    let long = format!("--{name}");
    given.iter().filter_map(|a| a.to_str()).any(|a| {
        let short = |c| a.starts_with('-') && !a.starts_with("--") && a.contains(c);
        a == long || a.starts_with(&format!("{long}=")) || arg.get_short().is_some_and(short)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn expanded(toml: &str, args: &[&str]) -> Result<Vec<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, toml).unwrap();
        let args = args.iter().map(|a| OsString::from(a.replace("FILE", file.to_str().unwrap()))).collect();
        let all = expand(&crate::Cli::command(), args).map_err(|e| e.to_string())?;
        let texts = all.into_iter().map(|a| a.into_string().unwrap());
        Ok(texts.map(|a| a.replace(file.to_str().unwrap(), "FILE")).collect())
    }

    #[test]
    fn flags_of_the_file_stand_in_front() {
        let toml =
            "path = [\"wlan0\", \"wwan0\"]\nlatency = 500\nstats_interval = \"2s\"\nordered = true\njson = false";
        let got = expanded(toml, &["anabranch", "send", "--config", "FILE", "a", "b"]).unwrap();
        let want = [
            "anabranch",
            "send",
            "--latency=500",
            "--ordered",
            "--path=wlan0",
            "--path=wwan0",
            "--stats-interval=2s",
            "--config",
            "FILE",
            "a",
            "b",
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn the_command_line_wins() {
        let toml = "path = [\"wlan0\"]\nlatency = 500\njson = true";
        let args = ["anabranch", "-v", "send", "a", "b", "--config=FILE", "--path", "eth0", "--latency=1s", "-J"];
        assert_eq!(expanded(toml, &args).unwrap(), args);
    }

    #[test]
    fn flags_of_every_command_are_flags_of_the_file_too() {
        let with = |toml: &str, args: &[&str]| expanded(toml, args).unwrap();
        for (toml, times) in [("verbose = 2", 2), ("verbose = true", 1), ("verbose = false", 0), ("verbose = 0", 0)] {
            for command in COMMANDS {
                let got = with(toml, &["anabranch", command, "--config", "FILE"]);
                assert_eq!(got.iter().filter(|a| *a == "--verbose").count(), times, "{toml} {command}");
            }
            for args in
                [["anabranch", "-v", "send", "--config", "FILE"], ["anabranch", "send", "--config", "FILE", "-v"]]
            {
                assert_eq!(with(toml, &args), args, "{toml}");
            }
        }
        for toml in ["verbose = 10", "verbose = -1", "verbose = \"much\""] {
            let e = expanded(toml, &["anabranch", "send", "--config", "FILE"]).unwrap_err();
            assert!(e.contains("`verbose` is true, false, or a number"), "{e}");
        }
    }

    #[test]
    fn one_of_two_flags_for_one_thing_replaces_the_other() {
        for (toml, flag) in [("stats = \"csv\"", "-J"), ("stats = \"csv\"", "--json"), ("json = true", "--stats=csv")] {
            let args = ["anabranch", "recv", "--config", "FILE", flag, "a", "b"];
            assert_eq!(expanded(toml, &args).unwrap(), args);
        }
    }

    #[test]
    fn what_is_wrong_is_reported_with_the_file() {
        for (toml, needle) in [
            ("frob = 1", "`frob` is no flag of `send`"),
            ("config = \"x\"", "`config` is no flag"),
            ("ordered = \"yes\"", "`ordered` is true or false"),
            ("latency = 1.5", "needs a text, a whole number"),
            ("a = \n", "line 1: "),
        ] {
            let e = expanded(toml, &["anabranch", "send", "a", "b", "--config", "FILE"]).unwrap_err();
            assert!(e.contains(needle) && e.contains("c.toml"), "{e}");
        }
        assert!(expanded("", &["anabranch", "emulate", "--config", "FILE"]).is_ok(), "not ours");
    }
}
