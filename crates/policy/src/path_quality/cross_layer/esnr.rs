//! From frame errors to an effective signal-to-noise ratio (Xu et al. 2014 eq. 1 to 4).
//!
//! The bits of a frame are taken to be wrong independently of each other, as printed: errors in bursts make the bit error
//! rate too large. Of bit error rates over signal-to-noise ratios the paper names no table; here are the closed forms of
//! an AWGN channel with Gray mapping, over the energy of a symbol.

use anabranch_base::Modulation;
use core::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// Bytes of a frame of which nothing else is known.
const FRAME: u32 = 1_500;
/// Bit error rates beyond which tables end.
const LEAST_BER: f64 = 1e-12;
const MOST_BER: f64 = 0.5 - 1e-9;
/// Signal-to-noise ratios that are looked at: -10 to 40 dB.
const SNR: (f64, f64) = (0.1, 1e4);
/// Frame error rate of a link at its best.
const CLEAN: f64 = 1e-3;

/// Share of the frames that were wrong; half an error more and one frame more than were counted, or no error at all
/// would make a ratio without limit (printed: errors over frames).
pub fn frame_error_rate(erroneous: u64, total: u64) -> f64 {
    ((erroneous as f64 + 0.5) / (total as f64 + 1.0)).clamp(1e-6, 1.0 - 1e-6)
}

/// Bit error rate of frames of `bytes` (eq. 4).
pub fn bit_error_rate(fer: f64, bytes: u32) -> f64 {
    let bits = 8.0 * f64::from(if bytes == 0 { FRAME } else { bytes });
    -libm::expm1(libm::log1p(-fer) / bits)
}

fn q(x: f64) -> f64 {
    libm::erfc(x * FRAC_1_SQRT_2) / 2.0
}

/// Bit error rate at a signal-to-noise ratio, none where the modulation is not known.
pub fn ber_at(m: Modulation, snr: f64) -> Option<f64> {
    let qam = |points: f64, bits: f64| {
        let edge = 1.0 - 1.0 / libm::sqrt(points);
        4.0 / bits * edge * q(libm::sqrt(3.0 * snr / (points - 1.0)))
    };
    Some(match m {
        Modulation::Unknown => return None,
        Modulation::Bpsk => q(libm::sqrt(2.0 * snr)),
        Modulation::Qpsk => q(libm::sqrt(snr)),
        Modulation::Qam16 => qam(16.0, 4.0),
        Modulation::Qam64 => qam(64.0, 6.0),
        Modulation::Qam256 => qam(256.0, 8.0),
        Modulation::Dbpsk => libm::exp(-snr) / 2.0,
        Modulation::Dqpsk => dqpsk(snr / 2.0),
    })
}

/// Differential QPSK at `g` = Eb/N0: `Q1(a, b) - I0(ab) exp(-(a²+b²)/2) / 2` as an integral over a circle, by the sum
/// over equal steps, which is exact for what is smooth and periodic.
fn dqpsk(g: f64) -> f64 {
    const STEPS: u32 = 512;
    let (a2, b2) = (2.0 * g * (1.0 - FRAC_1_SQRT_2), 2.0 * g * (1.0 + FRAC_1_SQRT_2));
    let ratio = SQRT_2 - 1.0; // a / b
    let at = |i: u32| {
        let sin = libm::sin(2.0 * PI * f64::from(i) / f64::from(STEPS));
        let shape = (1.0 - ratio * ratio) / (1.0 + 2.0 * ratio * sin + ratio * ratio);
        shape * libm::exp(-(b2 + 2.0 * libm::sqrt(a2 * b2) * sin + a2) / 2.0)
    };
    (0..STEPS).map(at).sum::<f64>() / (2.0 * f64::from(STEPS))
}

/// The signal-to-noise ratio that explains a bit error rate, linear.
pub fn effective_snr(m: Modulation, ber: f64) -> Option<f64> {
    let ber = ber.clamp(LEAST_BER, MOST_BER);
    ber_at(m, 1.0)?;
    let (mut low, mut high) = (libm::log(SNR.0), libm::log(SNR.1));
    // 50 dB in halves: far below a thousandth of a decibel.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        match ber_at(m, libm::exp(middle)) {
            Some(b) if b > ber => low = middle,
            _ => high = middle,
        }
    }
    Some(libm::exp(f64::midpoint(low, high)))
}

/// Bits a second and Hertz of that ratio, the logarithm of eq. 8.
pub fn efficiency(m: Modulation, fer: f64, frame: u32) -> Option<f64> {
    effective_snr(m, bit_error_rate(fer, frame)).map(|snr| libm::log2(1.0 + snr))
}

/// That of a link at its best.
pub fn clean_efficiency(m: Modulation, frame: u32) -> Option<f64> {
    efficiency(m, CLEAN, frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published closed forms at frames of 1500 bytes: rows of frame error rate, columns of modulation.
    #[test]
    fn the_logarithm_hardly_moves_with_the_error_rate() {
        let columns = [Modulation::Bpsk, Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64];
        let rows = [
            (0.001, [3.877, 4.827, 7.078, 9.114]),
            (0.01, [3.640, 4.581, 6.819, 8.848]),
            (0.05, [3.447, 4.379, 6.604, 8.627]),
            (0.1, [3.353, 4.281, 6.499, 8.518]),
            (0.5, [3.076, 3.988, 6.182, 8.189]),
        ];
        for (fer, row) in rows {
            for (m, expected) in columns.into_iter().zip(row) {
                let found = efficiency(m, fer, 1_500).unwrap();
                assert!((found - expected).abs() < 0.002, "{m:?} at {fer}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn there_and_back() {
        for (_, m) in Modulation::WORDS {
            let mut before = f64::MAX;
            for ber in [0.1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-11] {
                let snr = effective_snr(m, ber).unwrap();
                let back = ber_at(m, snr).unwrap();
                assert!((back / ber - 1.0).abs() < 1e-6, "{m:?} at {ber}: {back}");
                assert!(snr.is_finite() && snr > SNR.0 && before > ber_at(m, snr).unwrap());
                before = back;
            }
        }
        assert_eq!(effective_snr(Modulation::Unknown, 0.1), None);
    }

    /// Known values of Marcum's form: one half without a signal; 2.3 dB worse than coherent QPSK at small error rates.
    #[test]
    fn differential_modulations() {
        assert!((dqpsk(0.0) - 0.5).abs() < 1e-12);
        // Q1(a, b) - I0(ab) exp(-(a² + b²)/2) / 2 at g = 2, by its series.
        let (a, b) = (libm::sqrt(4.0 * (1.0 - FRAC_1_SQRT_2)), libm::sqrt(4.0 * (1.0 + FRAC_1_SQRT_2)));
        let bessel = |n: i32| {
            let (mut sum, mut term) = (0.0, libm::pow(a * b / 2.0, f64::from(n)) / libm::tgamma(f64::from(n) + 1.0));
            for k in 1..60 {
                sum += term;
                term *= (a * b / 2.0) * (a * b / 2.0) / (f64::from(k) * f64::from(k + n));
            }
            sum
        };
        let scale = libm::exp(-(a * a + b * b) / 2.0);
        let marcum: f64 = (0..60).map(|k| libm::pow(a / b, f64::from(k)) * bessel(k)).sum::<f64>() * scale;
        let expected = marcum - bessel(0) * scale / 2.0;
        assert!((dqpsk(2.0) - expected).abs() < 1e-9, "{} and {expected}", dqpsk(2.0));
        let db = |m| 10.0 * libm::log10(effective_snr(m, 1e-9).unwrap());
        assert!((2.0..2.6).contains(&(db(Modulation::Dqpsk) - db(Modulation::Qpsk))));
        assert!((ber_at(Modulation::Dbpsk, 2.0).unwrap() - 0.067_667_641_618).abs() < 1e-9);
    }

    #[test]
    fn no_error_among_many_frames_is_no_infinite_ratio() {
        assert!((frame_error_rate(0, 999) - 0.000_5).abs() < 1e-12);
        assert!((frame_error_rate(0, u64::MAX) - 1e-6).abs() < 1e-12);
        assert!((frame_error_rate(10, 10) - 10.5 / 11.0).abs() < 1e-12);
        // 12000 bits of which one in 1.2 million is wrong.
        assert!((bit_error_rate(0.01, 0) - 8.375_28e-7).abs() < 1e-11);
        assert!((bit_error_rate(0.01, 750) / bit_error_rate(0.01, 1_500) - 2.0).abs() < 1e-6);
        assert!(efficiency(Modulation::Qam64, 1e-6, 1_500).unwrap().is_finite());
        assert!(clean_efficiency(Modulation::Qpsk, 0) > efficiency(Modulation::Qpsk, 0.01, 0));
    }
}
