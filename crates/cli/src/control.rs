//! Is this machine fit to measure on? An idle emulator before the runs, and another one beside them.

use crate::exit::Failure;
use anabranch_emulator::{ControlReport, EmulatorError, measure_control};
use serde::Serialize;
use std::time::Duration;

/// The idle measurement: long and dense enough that a single lost packet is not yet one in 10,000.
pub const IDLE: (Duration, u32) = (Duration::from_millis(4_000), 3_000);
/// Packets a second of the measurement beside the runs: about what one path carries.
const BESIDE_PER_SECOND: u32 = 750;

/// One measurement, in the units of the summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Control {
    /// Fewer than 1 in 10,000 packets lost and a delay error below 5 ms at the 99th percentile.
    pub ok: bool,
    /// Why not; `None` when `ok`.
    pub reason: Option<String>,
    /// Packets sent.
    pub packets: u64,
    /// Packets that never came.
    pub packets_lost: u64,
    /// Packets that never came, as a share of one.
    pub machine_loss: f64,
    /// Half of the delays were off by no more than this, in ms.
    pub delay_error_p50_ms: f64,
    /// 99 % of the delays were off by no more than this, in ms.
    pub delay_error_p99_ms: f64,
    /// No delay was off by more than this, in ms.
    pub delay_error_max_ms: f64,
}

impl From<&ControlReport> for Control {
    fn from(r: &ControlReport) -> Self {
        let ms = |d: anabranch_base::Duration| d.as_millis_f64();
        Control {
            ok: r.ok,
            reason: r.failure(),
            packets: r.sent,
            packets_lost: r.lost,
            machine_loss: if r.sent == 0 { 1.0 } else { r.lost as f64 / r.sent as f64 },
            delay_error_p50_ms: ms(r.delay_error_p50),
            delay_error_p99_ms: ms(r.delay_error_p99),
            delay_error_max_ms: ms(r.delay_error_max),
        }
    }
}

impl Control {
    /// The figures in a line.
    pub fn line(&self) -> String {
        format!(
            "{} of {} packets lost, delay error p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            self.packets_lost, self.packets, self.delay_error_p50_ms, self.delay_error_p99_ms, self.delay_error_max_ms
        )
    }
}

/// Measures the idle machine.
///
/// # Errors
/// No sockets or threads to be had.
pub async fn idle() -> Result<Control, Failure> {
    measure(IDLE.0, IDLE.1).await
}

/// Measures beside a run of this length.
///
/// # Errors
/// No sockets or threads to be had.
pub async fn beside(length: Duration) -> Result<Control, Failure> {
    measure(length, BESIDE_PER_SECOND).await
}

async fn measure(length: Duration, per_second: u32) -> Result<Control, Failure> {
    let (tell, result) = tokio::sync::oneshot::channel::<Result<ControlReport, EmulatorError>>();
    // A thread of its own, not one of the runtime's: a demo that is interrupted does not wait for it.
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            // The receiver is gone when the demo was interrupted.
            let _ = tell.send(measure_control(length, per_second));
        })
        .map_err(|e| Failure::network(format!("no thread for the control: {e}")))?;
    let report = result.await.map_err(|_| Failure::network("the control stopped without a result"))?;
    report.map(|report| Control::from(&report)).map_err(|e| Failure::network(format!("the control: {e}")))
}
