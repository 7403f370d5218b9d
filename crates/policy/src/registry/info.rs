//! What the registry knows about a policy: its hook, source and parameters.

use super::{Hook, Params};

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, in the parameter's unit.
    Number(f64),
    /// One of the parameter's words.
    Word(&'static str),
}

impl core::fmt::Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Word(w) => f.write_str(w),
        }
    }
}

/// A declared parameter. A test builds every policy and fails when one is never read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// Its name, as in `thin:rto_min=200`.
    pub name: &'static str,
    /// Value when the user gives none.
    pub default: Value,
    /// Unit of a number; empty for a plain count.
    pub unit: &'static str,
    /// Least number.
    pub min: f64,
    /// Largest number.
    pub max: f64,
    /// Must the number be whole?
    pub whole: bool,
    /// The words allowed; empty for a number.
    pub words: &'static [&'static str],
    /// The parameter of the same policy that a number must not be above, such as the beginning of a hysteresis.
    pub below: Option<&'static str>,
    /// What it does.
    pub meaning: &'static str,
}

impl ParamInfo {
    /// A number between `min` and `max`.
    pub const fn number(
        name: &'static str,
        default: f64,
        unit: &'static str,
        min: f64,
        max: f64,
        meaning: &'static str,
    ) -> Self {
        ParamInfo {
            name,
            default: Value::Number(default),
            unit,
            min,
            max,
            whole: false,
            words: &[],
            below: None,
            meaning,
        }
    }
    /// A whole number between `min` and `max`.
    pub const fn count(
        name: &'static str,
        default: u32,
        unit: &'static str,
        min: u32,
        max: u32,
        meaning: &'static str,
    ) -> Self {
        let whole = ParamInfo::number(name, default as f64, unit, min as f64, max as f64, meaning);
        ParamInfo { whole: true, ..whole }
    }
    /// 0 or 1.
    pub const fn flag(name: &'static str, default: bool, meaning: &'static str) -> Self {
        ParamInfo::count(name, default as u32, "0 or 1", 0, 1, meaning)
    }
    /// A time in milliseconds.
    pub const fn millis(name: &'static str, default: u32, min: u32, max: u32, meaning: &'static str) -> Self {
        ParamInfo::number(name, default as f64, "ms", min as f64, max as f64, meaning)
    }
    /// One of `words`, the first by default.
    pub const fn word(name: &'static str, words: &'static [&'static str], meaning: &'static str) -> Self {
        let number = ParamInfo::number(name, 0.0, "", 0.0, 0.0, meaning);
        ParamInfo { default: Value::Word(words[0]), words, ..number }
    }
    /// This number, which must not be above that of parameter `other`: such a choice is refused.
    pub const fn not_above(self, other: &'static str) -> Self {
        ParamInfo { below: Some(other), ..self }
    }
}

/// A registered policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyInfo {
    /// Hook it belongs to.
    pub hook: Hook,
    /// Its name, equal to its file's.
    pub name: &'static str,
    /// Authors, year and section, or the RFC.
    pub source: &'static str,
    /// Its file.
    pub file: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub params: &'static [ParamInfo],
}

/// A line of a hook's table: what a policy is called and how it is made.
pub struct Policy<T: ?Sized> {
    /// What it is.
    pub info: PolicyInfo,
    /// Makes one.
    pub build: fn(&Params) -> Box<T>,
}
