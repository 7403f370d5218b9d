//! The table of options in docs/SOCKETS.md says what the code does, and leaves none of Linux's out.

use super::tests::Host;
use super::{Errno, Style};
use crate::abi::SOL_SCTP;
use crate::abi::option::{AssocValue, name};
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

/// Numbers that are tried: all of Linux's, and some beyond.
const NUMBERS: std::ops::Range<i32> = 0..140;

struct Row {
    name: String,
    set: String,
    get: String,
}

fn rows() -> BTreeMap<i32, Row> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SOCKETS.md");
    let text = std::fs::read_to_string(file).expect("the document");
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(|c| c.trim().trim_matches('`').to_owned());
        let number = cells.next()?.parse().ok()?;
        Some((number, Row { name: cells.next()?, set: cells.next()?, get: cells.next()? }))
    };
    let table = text.split("\n## Options\n").nth(1).expect("the section");
    table.split("\n## ").next().unwrap_or_default().lines().filter_map(row).collect()
}

type Answers = Vec<Result<(), Errno>>;

/// Every answer to an option, whatever it is asked with, on sockets of both styles that are connected and not.
fn answers(number: i32) -> (Answers, Answers) {
    let (mut set, mut get) = (Vec::new(), Vec::new());
    for style in [Style::OneToOne, Style::OneToMany] {
        let settings = [("reconfig_enable", "1"), ("auth_enable", "1"), ("addip_enable", "1"), ("intl_enable", "1")];
        let mut h = Host::new(&settings);
        let (client, _, a) = h.connect(style, &[]);
        for id in [0, a.0] {
            let mask = AssocValue { id: id.into(), value: 7.into() };
            h.set(client, name::ENABLE_STREAM_RESET, mask.as_bytes());
        }
        let fresh = h.stack.socket(style, false);
        for socket in [client, fresh] {
            for id in [0, a.0] {
                for len in [4usize, 8, 12, 16, 132, 144, 152, 156, 176, 256, 400] {
                    let mut value = vec![0; len];
                    value[..4].copy_from_slice(&id.to_ne_bytes());
                    let got = h.stack.get_option(socket, SOL_SCTP, number, &value);
                    set.push(h.stack.set_option(h.now, socket, SOL_SCTP, number, &value));
                    if let Ok(b) = &got {
                        set.push(h.stack.set_option(h.now, socket, SOL_SCTP, number, b));
                    }
                    get.push(got.map(drop));
                }
            }
        }
    }
    (set, get)
}

fn agrees(number: i32, call: &str, cell: &str, answers: &[Result<(), Errno>]) {
    let refused = match cell {
        "ENOPROTOOPT" => Errno::NO_OPTION,
        "EOPNOTSUPP" => Errno::NOT_SUPPORTED,
        "call" => return,
        "yes" | "remembered" => {
            let known = |r: &Result<(), Errno>| !matches!(r, Err(Errno::NO_OPTION | Errno::NOT_SUPPORTED));
            assert!(answers.iter().any(known), "{call} {number} is refused, and the table has it");
            return;
        }
        _ => panic!("{call} {number}: {cell:?} is no answer"),
    };
    assert!(answers.iter().all(|r| *r == Err(refused)), "{call} {number} is not {cell}: {answers:?}");
}

#[test]
fn every_option_does_what_the_table_says() {
    let rows = rows();
    for number in NUMBERS {
        let (set, get) = answers(number);
        let (of_set, of_get) = rows.get(&number).map_or(("ENOPROTOOPT", "ENOPROTOOPT"), |r| (&r.set, &r.get));
        agrees(number, "setsockopt", of_set, &set);
        agrees(number, "getsockopt", of_get, &get);
    }
}

#[test]
fn every_option_of_linux_has_its_row() {
    let Ok(header) = std::fs::read_to_string("/usr/include/linux/sctp.h") else {
        println!("SKIPPED every_option_of_linux_has_its_row: the kernel's headers are not installed");
        return;
    };
    let rows = rows();
    let of_options =
        header.split("#define SCTP_RTOINFO").nth(1).and_then(|h| h.split("#define SCTP_PR_SCTP_NONE").next());
    let mut found = 1;
    for line in of_options.expect("the header has its options").lines() {
        let mut words = line.split_whitespace();
        let (Some("#define"), Some(name), Some(number)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(number) = number.parse::<i32>() else { continue };
        let row = rows.get(&number).unwrap_or_else(|| panic!("{name}, {number}, has no row"));
        assert_eq!(Some(row.name.as_str()), name.strip_prefix("SCTP_"), "{number}");
        found += 1;
    }
    assert!(found >= 60 && rows.contains_key(&0), "{found} options");
}
