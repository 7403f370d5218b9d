//! Parameters of one policy while it is built.

use super::{PolicyInfo, Value};
use anabranch_base::{Duration, RandomStream};
use core::cell::{Cell, RefCell};
use std::borrow::Cow;

/// The resolved parameters of a policy. Notes which were read, so a test can find parameters that are never read.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    values: Cow<'a, [(&'static str, Value)]>,
    seed: u64,
    /// One bit for each value that was asked for; and what is not among them.
    asked: Cell<u64>,
    /// Behind the value that was asked for last: most policies ask in the order in which they declare.
    next: Cell<usize>,
    missed: RefCell<Vec<&'static str>>,
}

impl<'a> Params<'a> {
    /// The given values; what is missing stays at zero.
    pub fn new(values: impl Into<Cow<'a, [(&'static str, Value)]>>, seed: u64) -> Self {
        Params {
            values: values.into(),
            seed,
            asked: Cell::default(),
            next: Cell::default(),
            missed: RefCell::default(),
        }
    }
    /// The defaults of `info`.
    pub fn defaults(info: &PolicyInfo, seed: u64) -> Self {
        Params::new(info.params.iter().map(|p| (p.name, p.default)).collect::<Vec<_>>(), seed)
    }
    /// Those that a policy wrapped by this one has, by their names; its defaults where they are not declared.
    pub fn of(&self, inner: &PolicyInfo) -> Params<'static> {
        let own = |name| self.values.iter().find(|(n, _)| *n == name).map(|&(_, v)| v);
        let values = inner.params.iter().map(|p| (p.name, own(p.name).unwrap_or(p.default)));
        Params::new(values.collect::<Vec<_>>(), self.seed)
    }
    /// The parameter is read by a policy that this one wraps.
    pub fn touch(&self, name: &'static str) {
        self.get(name);
    }
    // Some thirty are read for each association: what is read in the order of declaration is not searched for.
    #[inline]
    fn get(&self, name: &'static str) -> Option<Value> {
        let i = self.next.get();
        match self.values.get(i) {
            // Most often both are one constant, which is seen without a look at the letters.
            Some(&(n, value)) if core::ptr::eq(n, name) => {
                self.note(i);
                Some(value)
            }
            _ => self.search(name),
        }
    }
    #[inline(never)]
    fn search(&self, name: &'static str) -> Option<Value> {
        let found = self.values.iter().enumerate().find(|(_, (n, _))| *n == name);
        match found {
            Some((i, _)) => self.note(i),
            None => self.missed.borrow_mut().push(name),
        }
        found.map(|(_, &(_, v))| v)
    }
    /// The `i`-th was read.
    #[inline]
    fn note(&self, i: usize) {
        self.next.set(i + 1);
        self.asked.set(self.asked.get() | 1 << (i % 64));
    }
    /// A number; zero when it is not declared.
    pub fn number(&self, name: &'static str) -> f64 {
        match self.get(name) {
            Some(Value::Number(n)) => n,
            _ => 0.0,
        }
    }
    /// A whole number.
    pub fn count(&self, name: &'static str) -> u64 {
        self.number(name) as u64
    }
    /// A switch.
    pub fn flag(&self, name: &'static str) -> bool {
        self.number(name) != 0.0
    }
    /// A number of milliseconds.
    pub fn millis(&self, name: &'static str) -> Duration {
        Duration::from_secs_f64(self.number(name) / 1e3)
    }
    /// A number of seconds.
    pub fn secs(&self, name: &'static str) -> Duration {
        Duration::from_secs_f64(self.number(name))
    }
    /// A share of one, in parts per million.
    pub fn ppm(&self, name: &'static str) -> u64 {
        (self.number(name) * 1e6 + 0.5) as u64
    }
    /// A word; empty when it is not declared.
    pub fn word(&self, name: &'static str) -> &'static str {
        match self.get(name) {
            Some(Value::Word(w)) => w,
            _ => "",
        }
    }
    /// The random stream called `name` of this association's seed.
    pub fn random(&self, name: &str) -> RandomStream {
        RandomStream::named(self.seed, name)
    }
    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// Names asked for so far.
    pub fn asked(&self) -> Vec<&'static str> {
        let found = self.values.iter().enumerate().filter(|(i, _)| self.asked.get() >> (i % 64) & 1 == 1);
        found.map(|(_, (n, _))| *n).chain(self.missed.borrow().iter().copied()).collect()
    }
}
