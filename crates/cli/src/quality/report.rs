//! What is written: a table for people, JSON, a line of CSV for each frame.

use super::QualityArgs;
use super::decoded::{Decoded, Pictures};
use anabranch_media::Class;
use anabranch_media::quality::{Comparison, Frame, FrameState, Recording, Shown};
use anabranch_media::ts::VideoCodec;
use anabranch_report::Table;
use serde::Serialize;
use std::fmt::Write as _;

/// Version of the JSON; it rises when a field changes its meaning or goes.
const VERSION: u32 = 1;

/// The frames of a class, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Frames {
    pub frames: u64,
    pub missing: u64,
    pub damaged: u64,
    pub undecodable: u64,
    /// Too late to be shown, and their share of all.
    pub late: u64,
    pub late_share: f64,
}

impl Frames {
    fn of(frames: u64, missing: u64, damaged: u64, undecodable: u64, late: u64) -> Frames {
        Frames { frames, missing, damaged, undecodable, late, late_share: late as f64 / frames.max(1) as f64 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Classes {
    #[serde(rename = "I")]
    i: Frames,
    #[serde(rename = "P")]
    p: Frames,
    #[serde(rename = "B")]
    b: Frames,
    unknown: Frames,
}

#[derive(Clone, Debug, Serialize)]
struct StallRow {
    at_s: f64,
    length_s: f64,
}

/// Everything, as JSON has it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    version: u32,
    sent: String,
    received: String,
    codec: &'static str,
    seconds: f64,
    frames: Frames,
    by_class: Classes,
    decodable_share: f64,
    references_unknown: u64,
    /// Of those, frames that count as needing nothing: hardly a picture was found in them.
    #[serde(skip)]
    needing_nothing: u64,
    references_missing: u64,
    packets: u64,
    packets_missing: u64,
    video_packets: u64,
    video_packets_missing: u64,
    packets_strange: u64,
    packets_repeated: u64,
    by_arrival: bool,
    frames_late: u64,
    stalls: Vec<StallRow>,
    stalled_s: f64,
    pictures: u64,
    pictures_equal: u64,
    psnr_db: Option<f64>,
    ssim: Option<f64>,
    vmaf: Option<f64>,
    not_measured: Vec<String>,
}

impl Report {
    pub fn of(args: &QualityArgs, sent: &Recording, found: &Comparison, shown: &Shown, pictures: &Decoded) -> Report {
        let of = |c: usize| {
            Frames::of(found.frames[c], found.missing[c], found.damaged[c], found.undecodable[c], shown.late[c])
        };
        let [i, p, b, unknown] = [0, 1, 2, 3].map(of);
        let all = |of: &[u64; 4]| of.iter().sum::<u64>();
        let frames = Frames::of(
            all(&found.frames),
            all(&found.missing),
            all(&found.damaged),
            all(&found.undecodable),
            all(&shown.late),
        );
        let measured = pictures.as_ref().ok();
        let mut not_measured = Vec::new();
        if let Err(why) = pictures {
            not_measured.push(format!("PSNR, SSIM, VMAF: {why}"));
        }
        not_measured.extend(measured.and_then(|p| p.no_vmaf.as_ref()).map(|why| format!("VMAF: {why}")));
        Report {
            version: VERSION,
            sent: args.sent.display().to_string(),
            received: args.received.display().to_string(),
            codec: sent.codec().map_or("unknown", codec_name),
            seconds: shown.length.as_secs_f64(),
            frames,
            by_class: Classes { i, p, b, unknown },
            decodable_share: found.decodable_share(),
            references_unknown: found.unknown,
            needing_nothing: sent.frames().iter().map(|f| u64::from(counts_as_needing_nothing(f))).sum(),
            references_missing: found.before,
            packets: found.packets,
            packets_missing: found.packets_missing,
            video_packets: found.video_packets,
            video_packets_missing: found.video_missing,
            packets_strange: found.strange,
            packets_repeated: found.repeated,
            by_arrival: shown.by_arrival,
            frames_late: frames.late,
            stalls: shown
                .stalls
                .iter()
                .map(|s| StallRow { at_s: s.from.as_secs_f64(), length_s: s.length.as_secs_f64() })
                .collect(),
            stalled_s: shown.stalled().as_secs_f64(),
            pictures: measured.map_or(0, |p| p.by_pts.len() as u64),
            pictures_equal: measured.map_or(0, |p| p.by_pts.values().filter(|m| m.is_equal()).count() as u64),
            psnr_db: measured.and_then(Pictures::psnr),
            ssim: measured.and_then(Pictures::ssim),
            vmaf: measured.and_then(Pictures::vmaf),
            not_measured,
        }
    }

    /// One object, with a line break behind it.
    pub fn json(&self) -> String {
        // Numbers and words alone: nothing that cannot be written.
        serde_json::to_string_pretty(self).map_or(String::new(), |text| text + "\n")
    }

    /// For people.
    pub fn text(&self) -> String {
        let share = |f: &Frames, n: u64| 100.0 * n as f64 / f.frames.max(1) as f64;
        let mut table = Table::new("")
            .text("frames")
            .number("sent", "", 0)
            .number("missing", "", 0)
            .number("damaged", "", 0)
            .number("missing or damaged", "%", 2)
            .number("cannot be decoded", "", 0)
            .number("decodable", "%", 2);
        for (name, f) in self.classes().into_iter().chain([("all", &self.frames)]) {
            let lost = share(f, f.missing + f.damaged);
            table.push((name, f.frames, f.missing, f.damaged, lost, f.undecodable, 100.0 - share(f, f.undecodable)));
        }
        let mut out = table.to_text();
        let _ = writeln!(out, "\n{} of {:.2} s", self.codec, self.seconds);
        if self.references_unknown > 0 {
            let (all, free) = (self.references_unknown, self.needing_nothing);
            let (before, whole) = ("as needing the references before it", "as decodable when it is whole");
            let _ = match free {
                0 => writeln!(out, "References of {all} frames are not known; each counts {before}"),
                _ if free == all => writeln!(out, "References of {all} frames are not known; each counts {whole}"),
                _ => writeln!(
                    out,
                    "References of {all} frames are not known; each of {} counts {before}, each of {free} {whole}",
                    all - free
                ),
            };
        }
        if self.references_missing > 0 {
            let _ = writeln!(
                out,
                "Frames that refer to what was before the beginning, and cannot be decoded: {}",
                self.references_missing
            );
        }
        let other = (self.packets - self.video_packets, self.packets_missing - self.video_packets_missing);
        let _ = writeln!(
            out,
            "Packets missing: {} of {} of the video, {} of {} others",
            self.video_packets_missing, self.video_packets, other.1, other.0
        );
        if self.packets_strange + self.packets_repeated > 0 {
            let (strange, repeated) = (self.packets_strange, self.packets_repeated);
            let _ = writeln!(out, "Packets that were not sent like this: {strange}; that came twice: {repeated}");
        }
        self.write_stalls(&mut out);
        if self.pictures > 0 {
            let psnr = self.psnr_db.map_or("equal pictures".to_owned(), |p| format!("{p:.2} dB"));
            let ssim = self.ssim.map_or(String::new(), |s| format!(", SSIM {s:.4}"));
            let vmaf = self.vmaf.map_or(String::new(), |v| format!(", VMAF {v:.1}"));
            let _ = writeln!(
                out,
                "PSNR {psnr}{ssim}{vmaf} over {} pictures, of which {} are equal",
                self.pictures, self.pictures_equal
            );
        }
        for line in &self.not_measured {
            let _ = writeln!(out, "Not measured: {line}");
        }
        out
    }

    fn write_stalls(&self, out: &mut String) {
        let by = if self.by_arrival { "times of arrival" } else { "time stamps" };
        let longest = self.stalls.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s));
        let _ = match longest {
            None => writeln!(out, "Stalls, by {by}: none"),
            Some(longest) => writeln!(
                out,
                "Stalls, by {by}: {}, {:.2} s together, the longest {:.2} s at {:.2} s",
                self.stalls.len(),
                self.stalled_s,
                longest.length_s,
                longest.at_s
            ),
        };
        if self.frames_late > 0 {
            let of = |(name, f): &(&str, &Frames)| {
                format!("{name} {} of {} ({:.2} %)", f.late, f.frames, 100.0 * f.late_share)
            };
            let classes: Vec<String> = self.classes().iter().map(of).collect();
            let _ =
                writeln!(out, "Frames that came too late to be shown: {}: {}", self.frames_late, classes.join(", "));
        }
    }

    /// The classes that there are.
    fn classes(&self) -> Vec<(&'static str, &Frames)> {
        let c = &self.by_class;
        let all = [("I", &c.i), ("P", &c.p), ("B", &c.b), ("unknown", &c.unknown)];
        all.into_iter().filter(|(_, f)| f.frames > 0).collect()
    }
}

/// Are its references not known, and none taken for them?
fn counts_as_needing_nothing(frame: &Frame) -> bool {
    let needs = &frame.picture.needs;
    !needs.known && !needs.missing && needs.units.is_empty()
}

/// What a coding is called.
pub fn codec_name(codec: VideoCodec) -> &'static str {
    match codec {
        VideoCodec::Mpeg2 => "MPEG-2",
        VideoCodec::H264 => "H.264",
        VideoCodec::H265 => "H.265",
        VideoCodec::Av1 => "AV1",
        VideoCodec::Other => "unknown",
    }
}

/// A line for each frame, in decoding order.
pub fn frames_csv(sent: &Recording, found: &Comparison, shown: &Shown, pictures: Option<&Pictures>) -> String {
    let mut out = String::from(
        "frame,pts,time_s,class,layer,needs,needs_known,packets,arrived,state,decodable,shown,psnr_db,ssim,vmaf,needs_missing\n",
    );
    let results = found.results.iter().zip(&shown.frames);
    for (i, (frame, (result, shown))) in sent.frames().iter().zip(results).enumerate() {
        let picture = &frame.picture;
        let needs: Vec<String> = picture.needs.units.iter().map(u64::to_string).collect();
        let state = match result.state {
            FrameState::Whole => "whole",
            FrameState::Damaged => "damaged",
            FrameState::Missing => "missing",
        };
        let measured = frame.pts.and_then(|pts| pictures?.by_pts.get(&pts));
        let number = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.4}"));
        let _ = writeln!(
            out,
            "{i},{},{:.6},{},{},{},{},{},{},{state},{},{},{},{},{},{}",
            frame.pts.map_or(String::new(), |p| p.to_string()),
            frame.time as f64 / 90_000.0,
            picture.class.map_or(String::new(), |c: Class| c.to_string()),
            picture.layer,
            needs.join(" "),
            u8::from(picture.needs.known),
            frame.packets,
            result.arrived,
            u8::from(result.decodable),
            u8::from(*shown),
            number(measured.map(|m| m.psnr)),
            number(measured.map(|m| m.ssim)),
            number(measured.and_then(|m| m.vmaf)),
            u8::from(picture.needs.missing),
        );
    }
    out
}
