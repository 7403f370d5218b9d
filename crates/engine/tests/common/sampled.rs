//! Wide grids of cases: an ordinary run takes some of each, the nightly run all
//! (`ANABRANCH_ALL_CASES=1`).

/// Are all cases of every grid to be run?
pub fn all_cases() -> bool {
    std::env::var_os("ANABRANCH_ALL_CASES").is_some()
}

/// Some of a grid. All of it where all cases are run.
pub struct Sample {
    one_in: usize,
    at: usize,
}

impl Sample {
    /// Every `one_in`-th case. A number that shares no factor with the lengths of the inner loops meets every value of each.
    pub fn one_in(one_in: usize) -> Sample {
        Sample { one_in: if all_cases() { 1 } else { one_in }, at: 0 }
    }

    /// Is the next case to be run?
    pub fn takes(&mut self) -> bool {
        self.at += 1;
        (self.at - 1).is_multiple_of(self.one_in)
    }
}
