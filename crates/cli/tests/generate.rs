//! Manual pages and completions are made from what `--help` is made from.

use std::process::Command;

fn run(args: &[&str]) -> (i32, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(args).output().expect("the program starts");
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn every_command_has_a_manual_page_with_its_options() {
    let dir = tempfile::tempdir().expect("a folder");
    let man = dir.path().join("man");
    assert_eq!(run(&["generate", "man", man.to_str().expect("a path")]).0, 0);
    let page = |name: &str| std::fs::read_to_string(man.join(format!("{name}.1"))).expect(name);
    let all = page("anabranch");
    let (_, help) = run(&["--help"]);
    let commands = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    // Lines that are further in go on from the one before.
    let names =
        commands.filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' '))?.split_whitespace().next());
    let commands: Vec<&str> = names.filter(|c| *c != "help").collect();
    assert!(commands.contains(&"send") && !commands.contains(&"generate"), "{commands:?}");
    for command in commands {
        let page = page(&format!("anabranch-{command}"));
        assert!(page.contains(".TH"), "{command}: {page}");
        assert!(all.contains(&format!("anabranch\\-{command}(1)")), "{command}");
    }
    assert!(page("anabranch-send").contains("\\-\\-path"), "the options of send");
    assert!(page("anabranch-lab-run").contains("\\-\\-quick"), "the options of a command of a command");
}

#[test]
fn completions_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, text) = run(&["generate", "completions", shell]);
        assert_eq!(code, 0, "{shell}");
        assert!(text.contains("emulate") && text.contains("latency"), "{shell}");
    }
    assert_eq!(run(&["generate", "completions", "dos"]).0, 2);
}
