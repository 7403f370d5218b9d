//! Every command line that help texts and pages show is one that the program takes.

use crate::uri::{InputUri, PeerUri};
use crate::{Cli, Command, emulate};
use clap::{CommandFactory, Parser};

/// Help of every command, as a user sees it.
fn helps() -> Vec<(String, String)> {
    let mut all = Cli::command();
    all.build();
    let mut texts = vec![("anabranch".to_owned(), all.render_long_help().to_string())];
    for c in all.get_subcommands_mut() {
        texts.push((c.get_name().to_owned(), c.render_long_help().to_string()));
    }
    texts
}

/// Command lines in a text: what begins with `anabranch` and a command, continued lines joined, without what stands
/// behind a pipe or a run of blanks.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|l| l.starts_with("anabranch "));
    lines.map(words).filter(|w| !w.iter().any(|w| w == "COMMAND" || w == "…")).collect()
}

/// Words as a shell makes them, as far as the examples go.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted, mut blanks) = (Vec::new(), None::<String>, false, 0);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if quoted => word.get_or_insert_default().push(c),
            ' ' => {
                blanks += 1;
                all.extend(word.take());
                continue;
            }
            '|' | '#' | '>' => return all,
            // An explanation beside the line.
            _ if blanks >= 3 && !matches!(c, '-' | '\'') => return all,
            c => word.get_or_insert_default().push(c),
        }
        blanks = 0;
    }
    all.extend(word);
    all
}

#[track_caller]
fn taken(words: &[String]) {
    let line = words.join(" ");
    let cli = Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{line}: {e}"));
    let checked = match cli.command {
        Command::Send(args) => PeerUri::parse(&args.peer)
            .and_then(|peer| args.policies.profile(&peer))
            .and_then(|_| InputUri::parse(&args.input).map(drop)),
        Command::Recv(args) => args.places().and_then(|(at, _)| args.policies.profile(&at).map(drop)),
        Command::Emulate(args) if args.config.is_none() => emulate::config(&args).map(drop),
        _ => Ok(()),
    };
    checked.unwrap_or_else(|e| panic!("{line}: {e}"));
}

#[test]
fn examples_in_help_texts() {
    let mut seen = 0;
    for (name, text) in helps() {
        let found = commands(&text);
        assert!(!found.is_empty() || matches!(name.as_str(), "bench" | "help"), "{name} shows no example");
        found.iter().for_each(|words| taken(words));
        seen += found.len();
        for hint in text.split("such as ").skip(1).filter_map(|rest| rest.split([';', ',', ' ', '\n']).next()) {
            if hint.contains('=') {
                taken(&["anabranch", "send", "-", "h", "--set", hint].map(str::to_owned));
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_word_of_emulate_is_in_its_help() {
    let help = helps().into_iter().find(|(name, _)| name == "emulate").expect("it is there").1;
    for word in anabranch_emulator::config::all_words() {
        let there = help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|w| w == word);
        assert!(there, "`{word}` is not in `emulate --help`");
    }
}

#[test]
fn examples_in_pages() {
    for (page, text, least) in [
        ("USE.md", include_str!("../../../docs/USE.md"), 6),
        ("README.md", include_str!("../../../README.md"), 3),
        ("GAMES.md", include_str!("../../../docs/GAMES.md"), 1),
    ] {
        let found = commands(text);
        assert!(found.len() >= least, "{page}: {found:?}");
        found.iter().for_each(|words| taken(words));
    }
}
