//! Values that do not fit the flow, the run or their own kind.

use super::tests_of_mistakes::{TWO, all, error};
use super::*;

/// Who starts too late is named by the key that makes it so.
#[test]
fn a_start_after_the_end_is_named_by_its_key() {
    all(&[
        (17, "start = \"2s\"", "flow `main`: `start`: must come before the end, `duration`"),
        (17, "start = \"3600s\"", "flow `main`: `start`: must come before the end, `duration`"),
        (
            17,
            "start-within = \"2s\"",
            "flow `main`: `start-within`: the latest start must come before the end, `duration`",
        ),
        (
            17,
            "start-within = \"10s\"",
            "flow `main`: `start-within`: the latest start must come before the end, `duration`",
        ),
    ]);
    let both = error(17, "start = \"1s\"\nstart-within = \"1s\"");
    assert!(both.starts_with("two.toml:18: flow `main`: `start-within`: the latest start"), "{both}");
    let late = error(17, "start = \"3s\"\nstart-within = \"1s\"");
    assert!(late.starts_with("two.toml:17: flow `main`: `start`: "), "{late}");
}
