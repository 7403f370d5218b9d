//! The quality of a picture as judged by the throughput of its stream: the peak signal-to-noise ratio in the form of Xu et
//! al. (CMT-CL/FD), and the class of the mean opinion score that goes with it.

/// What a ratio is cut off at, dB: where the stream is whole it would be without end.
const CAP: f64 = 60.0;

/// What is measured of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picture {
    /// 20 log10 of the rate of the stream over what is missing of it, dB.
    Psnr,
    /// Class of the mean opinion score for that ratio, 1 (bad) to 5 (excellent).
    Mos,
    /// Was the ratio cut off?
    Capped,
}

impl Picture {
    /// Its value for a stream that is made at one rate and comes at another, bit/s.
    pub fn of(self, made: f64, came: f64) -> f64 {
        let missing = (made - came).max(0.0);
        // In this order, zero missing is beyond all.
        let whole = missing * libm::pow(10.0, CAP / 20.0) <= made;
        let psnr = if whole { CAP } else { 20.0 * libm::log10(made / missing) };
        match self {
            Picture::Psnr => psnr,
            Picture::Mos => f64::from(class(psnr)),
            Picture::Capped => f64::from(u8::from(whole)),
        }
    }
}

/// Above 37 dB excellent, from 31 good, from 25 fair, from 20 poor, bad below.
fn class(psnr: f64) -> u8 {
    match psnr {
        p if p > 37.0 => 5,
        p if p >= 31.0 => 4,
        p if p >= 25.0 => 3,
        p if p >= 20.0 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_what_is_missing() {
        let psnr = |came| Picture::Psnr.of(1e6, came);
        // A tenth of the stream is missing, a hundredth, all of it.
        for (came, want) in [(0.9e6, 20.0), (0.99e6, 40.0), (0.0, 0.0)] {
            assert!((psnr(came) - want).abs() < 1e-9, "{came}: {}", psnr(came));
        }
        // The throughputs behind 36.42 and 22.68 dB.
        assert!((psnr(984_900.0) - 36.42).abs() < 0.01 && (psnr(926_550.0) - 22.68).abs() < 0.01);
    }

    #[test]
    fn it_is_cut_off_and_said_to_be() {
        let of = |came| (Picture::Psnr.of(1e6, came), Picture::Capped.of(1e6, came));
        assert_eq!((of(1e6), of(1.2e6)), ((60.0, 1.0), (60.0, 1.0)));
        assert_eq!(of(999_001.0), (60.0, 1.0));
        let below = of(998_999.0);
        assert!(below.0 > 59.9 && below.0 < 60.0 && below.1 == 0.0, "{below:?}");
    }

    #[test]
    fn classes_of_opinion() {
        let classes = [37.01, 37.0, 31.0, 30.99, 25.0, 24.99, 20.0, 19.99, 0.0].map(class);
        assert_eq!(classes, [5, 4, 4, 3, 3, 2, 2, 1, 1]);
        assert_eq!([1e6, 0.95e6, 0.5e6].map(|came| Picture::Mos.of(1e6, came)), [5.0, 3.0, 1.0]);
    }
}
