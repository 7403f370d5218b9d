//! PSNR, SSIM and VMAF of each frame, by ffmpeg.
//!
//! Both streams are decoded. To each picture of the stream as it was sent belongs the last picture that the other one
//! shows at that time, so a picture that was lost counts as the one before it, which stands.
//!
//! Of AV1 the decoder gets what can be decoded, and nothing else: where a picture that others refer to is missing, ffmpeg may
//! show nothing more of the stream with libdav1d, and pictures behind the next key frame wrongly with libaom.

use super::filters::{Filters, failed};
use super::ivf;
use super::progress::Progress;
use super::read::Source;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use anabranch_media::quality::{Comparison, Recording};
use anabranch_media::ts::{PTS_CYCLE, VideoCodec};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;

/// One picture as it was sent, against what was shown at its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Decibels; infinite for equal pictures.
    pub psnr: f64,
    pub ssim: f64,
    pub vmaf: Option<f64>,
}

impl Measured {
    /// Mean squared error as a part of the squared peak. The error that ffmpeg prints is in samples of the video, whose
    /// peak it does not print: 255 with 8 bits, 1023 with 10.
    fn error(&self) -> f64 {
        10f64.powf(-self.psnr / 10.0)
    }

    pub fn is_equal(&self) -> bool {
        self.psnr == f64::INFINITY
    }
}

/// What ffmpeg measured, by time stamp.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    pub by_pts: BTreeMap<u64, Measured>,
    /// Why there is no VMAF.
    pub no_vmaf: Option<String>,
}

/// What there is, or why there is nothing.
pub type Decoded = Result<Pictures, String>;

impl Pictures {
    /// Runs ffmpeg on both, in which `found` was found.
    ///
    /// # Errors
    /// Interrupted. That ffmpeg is not there or fails is no failure of the command.
    pub fn measure(
        sent: &Source,
        received: &Source,
        found: &Comparison,
        progress: &Progress,
        interrupt: &Interrupt,
    ) -> Result<Decoded, Failure> {
        let filters = match Filters::of_ffmpeg(interrupt)? {
            Ok(filters) => filters,
            Err(why) => return Ok(Err(why)),
        };
        if !filters.has("psnr") || !filters.has("ssim") {
            return Ok(Err("this ffmpeg has no filters psnr and ssim".to_owned()));
        }
        let inputs = if sent.recording.codec() == Some(VideoCodec::Av1) {
            let came = found.results.iter().map(|r| r.decodable);
            let shown = [decodable(&sent.recording), came.collect()].map(|d| times(&sent.recording, &d));
            if shown.iter().any(BTreeSet::is_empty) {
                return Ok(Err("no picture can be decoded".to_owned()));
            }
            // What came of a frame that can be decoded is what was sent of it.
            shown.map(|times| ivf::of(sent.stream(), &times).map(Input::Ivf))
        } else {
            [sent, received].map(|s| Ok(Input::Stream(s.stream())))
        };
        let inputs = match inputs {
            [Ok(sent), Ok(received)] => [sent, received],
            [Err(e), _] | [_, Err(e)] => return Ok(Err(format!("the video cannot be taken out of the stream: {e}"))),
        };
        let graph = "[0:v:0]settb=1/90000[sent];[1:v:0]settb=1/90000,split[a][b];\
                     [sent][a]psnr[psnr];[psnr][b]ssim,metadata=mode=print:file=-";
        let frames = sent.recording.frames().len() as u64;
        let mut parser = Parser::default();
        let run = Run { inputs: &inputs, graph, what: "PSNR and SSIM", frames };
        if let Some(why) = run.to_end(progress, interrupt, |line| parser.take(line))? {
            return Ok(Err(why));
        }
        let mut pictures = Pictures { by_pts: parser.finish(), no_vmaf: None };
        if pictures.by_pts.is_empty() {
            return Ok(Err("ffmpeg shows no picture of what was received".to_owned()));
        }
        if !filters.has("libvmaf") {
            pictures.no_vmaf = Some("this ffmpeg has no filter libvmaf".to_owned());
            return Ok(Ok(pictures));
        }
        pictures.no_vmaf = pictures.add_vmaf(&inputs, frames, progress, interrupt)?;
        Ok(Ok(pictures))
    }

    /// VMAF is no measure of two equals, so the received stream is put on the pictures of the sent one first. Gives why
    /// there is none.
    fn add_vmaf(
        &mut self,
        inputs: &[Input<'_>; 2],
        frames: u64,
        progress: &Progress,
        interrupt: &Interrupt,
    ) -> Result<Option<String>, Failure> {
        let graph = "[0:v:0]settb=1/90000,split[under][sent];[1:v:0]settb=1/90000[over];\
                     [under][over]overlay=eof_action=repeat[shown];\
                     [sent]metadata=mode=add:key=sent:value=1,metadata=mode=print:file=-[reference];\
                     [shown][reference]libvmaf=log_fmt=csv:log_path=/dev/stderr";
        let (mut times, mut scores) = (Vec::new(), Vec::new());
        let run = Run { inputs, graph, what: "VMAF", frames };
        let failed = run.to_end_with(
            progress,
            interrupt,
            |line| times.extend(line.starts_with("frame:").then(|| pts(line)).flatten()),
            |text| scores = vmaf_scores(text),
        )?;
        if failed.is_some() {
            return Ok(failed);
        }
        if scores.is_empty() {
            return Ok(Some("ffmpeg gave no VMAF".to_owned()));
        }
        for (at, score) in times.iter().zip(scores) {
            if let Some(measured) = self.by_pts.get_mut(at) {
                measured.vmaf = Some(score);
            }
        }
        Ok(None)
    }

    /// PSNR of the mean squared error over all pictures; none when all are equal.
    pub fn psnr(&self) -> Option<f64> {
        let error = self.mean(|m| Some(m.error()))?;
        (error > 0.0).then(|| -10.0 * error.log10())
    }

    /// Mean SSIM.
    pub fn ssim(&self) -> Option<f64> {
        self.mean(|m| Some(m.ssim))
    }

    /// Mean VMAF.
    pub fn vmaf(&self) -> Option<f64> {
        self.mean(|m| m.vmaf)
    }

    fn mean(&self, of: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.by_pts.values().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Which frames of a stream can be decoded if all of it is there: what refers to pictures in front of it cannot.
fn decodable(sent: &Recording) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::with_capacity(sent.frames().len());
    for frame in sent.frames() {
        let needs = &frame.picture.needs;
        out.push(!needs.missing && needs.units.iter().all(|n| out.get(*n as usize).copied().unwrap_or(false)));
    }
    out
}

/// The time stamps of those frames of which it is said.
fn times(sent: &Recording, of: &[bool]) -> BTreeSet<u64> {
    sent.frames().iter().zip(of).filter(|(_, of)| **of).filter_map(|(f, _)| f.pts).collect()
}

/// A stream as ffmpeg reads it.
enum Input<'a> {
    Stream(&'a Path),
    /// Of AV1, which ffmpeg does not find in transport streams.
    Ivf(NamedTempFile),
}

impl Input<'_> {
    fn file(&self) -> (&'static str, &Path) {
        match self {
            Input::Stream(path) => ("mpegts", path),
            Input::Ivf(file) => ("ivf", file.path()),
        }
    }
}

/// One run of ffmpeg over both streams.
struct Run<'a> {
    inputs: &'a [Input<'a>; 2],
    graph: &'a str,
    what: &'a str,
    frames: u64,
}

impl Run<'_> {
    fn to_end(
        &self,
        progress: &Progress,
        interrupt: &Interrupt,
        take: impl FnMut(&str),
    ) -> Result<Option<String>, Failure> {
        self.to_end_with(progress, interrupt, take, |_| ())
    }

    /// Gives lines of standard output to `take`, and all of standard error to `log`. Returns why it failed.
    fn to_end_with(
        &self,
        progress: &Progress,
        interrupt: &Interrupt,
        mut take: impl FnMut(&str),
        log: impl FnOnce(&str),
    ) -> Result<Option<String>, Failure> {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "fatal", "-nostdin"]);
        for input in self.inputs {
            let (format, path) = input.file();
            // Time stamps stay those of the stream: they say which pictures belong together.
            command.args(["-copyts", "-f", format, "-i"]).arg(path);
        }
        command.args(["-filter_complex", self.graph, "-f", "null", "-"]);
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(e) => return Ok(Some(format!("ffmpeg does not start: {e}"))),
        };
        let errors = child.stderr.take().map(|mut e| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // A child that is killed may break the pipe.
                let _ = e.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        let mut done = 0;
        for line in child.stdout.take().into_iter().flat_map(|o| BufReader::new(o).lines()) {
            let Ok(line) = line else { break };
            if line.starts_with("frame:") {
                done += 1;
                progress.tell(self.what, done, self.frames);
            }
            take(&line);
            if interrupt.has_come() {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::Interrupted);
            }
        }
        let status = child.wait();
        let text = errors.and_then(|e| e.join().ok()).unwrap_or_default();
        if interrupt.has_come() {
            return Err(Failure::Interrupted);
        }
        if !status.is_ok_and(|s| s.success()) {
            return Ok(Some(failed(&text)));
        }
        log(&text);
        Ok(None)
    }
}

/// Reads what ffmpeg's filter `metadata` prints.
#[derive(Default)]
pub struct Parser {
    by_pts: BTreeMap<u64, Measured>,
    at: Option<u64>,
    seen: (Option<f64>, Option<f64>),
}

impl Parser {
    pub fn take(&mut self, line: &str) {
        if line.starts_with("frame:") {
            self.close();
            self.at = pts(line);
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().parse().ok();
            match key {
                "lavfi.psnr.psnr_avg" => self.seen.0 = value,
                "lavfi.ssim.All" => self.seen.1 = value,
                _ => {}
            }
        }
    }

    /// A picture before the first one that was received has no measures.
    fn close(&mut self) {
        if let (Some(at), (Some(psnr), Some(ssim))) = (self.at.take(), std::mem::take(&mut self.seen)) {
            self.by_pts.insert(at, Measured { psnr, ssim, vmaf: None });
        }
    }

    pub fn finish(mut self) -> BTreeMap<u64, Measured> {
        self.close();
        self.by_pts
    }
}

/// The time stamp in a line `frame:3 pts:97200 pts_time:1.08`, as the stream has it.
fn pts(line: &str) -> Option<u64> {
    let value: i64 = line.split_whitespace().find_map(|w| w.strip_prefix("pts:"))?.parse().ok()?;
    Some(value.rem_euclid(PTS_CYCLE as i64) as u64)
}

/// The scores in a log of libvmaf: a header that names the columns, then a line for each picture.
pub fn vmaf_scores(log: &str) -> Vec<f64> {
    let mut lines = log.lines().skip_while(|l| !l.starts_with("Frame,"));
    let Some(column) = lines.next().and_then(|h| h.split(',').position(|c| c.trim() == "vmaf")) else {
        return Vec::new();
    };
    lines.map_while(|l| l.split(',').nth(column)?.trim().parse().ok()).collect()
}
