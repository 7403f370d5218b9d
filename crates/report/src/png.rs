//! Drawings as pixels.

use crate::{Drawing, ReportError};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Families to look for, plainest first; what the machine has decides.
const FAMILIES: [&str; 6] = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica", "Segoe UI"];
/// Pixels of the picture for each pixel of the drawing: sharp in print.
const SCALE: f32 = 2.0;

/// Makes PNG pictures with the fonts of this machine.
#[derive(Clone, Debug)]
pub struct Rasteriser {
    fonts: Arc<Database>,
}

impl Rasteriser {
    /// Looks for fonts.
    ///
    /// # Errors
    /// [`ReportError::NoFont`] when the machine has none: a plot without words would mislead.
    pub fn new() -> Result<Self, ReportError> {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let has =
            |family: &str| fonts.query(&Query { families: &[Family::Name(family)], ..Query::default() }).is_some();
        let first = || Some(fonts.faces().next()?.families.first()?.0.clone());
        let found = FAMILIES.iter().find(|f| has(f)).map(|f| (*f).to_owned()).or_else(first);
        fonts.set_sans_serif_family(found.ok_or(ReportError::NoFont)?);
        Ok(Rasteriser { fonts: Arc::new(fonts) })
    }

    /// The drawing as a PNG file.
    ///
    /// # Errors
    /// [`ReportError::Png`] when the drawing is too large to be a picture.
    pub fn png(&self, drawing: &Drawing) -> Result<Vec<u8>, ReportError> {
        let fail = |e: &dyn std::fmt::Display| ReportError::Png(e.to_string());
        let options = usvg::Options { fontdb: self.fonts.clone(), ..usvg::Options::default() };
        let tree = usvg::Tree::from_str(&drawing.plain(), &options).map_err(|e| fail(&e))?;
        let size = tree.size();
        let (w, h) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
        let mut pixels = tiny_skia::Pixmap::new(w, h).ok_or_else(|| fail(&"its size is out of range"))?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|e| fail(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinePlot, Plot};

    #[test]
    fn a_picture_has_the_size_and_the_ink_of_its_drawing() {
        let Ok(rasteriser) = Rasteriser::new() else {
            eprintln!("SKIPPED a_picture_has_the_size_and_the_ink_of_its_drawing: this machine has no fonts");
            return;
        };
        let drawing = LinePlot::new("a").series("b", [(0.0, 1.0), (1.0, 2.0)]).draw();
        let png = rasteriser.png(&drawing).unwrap();
        let pixels = tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!(pixels.width(), (drawing.size().0 + 24.0) as u32 * 2);
        let blue = pixels.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == (0x00, 0x72, 0xb2)).count();
        let dark = pixels.pixels().iter().filter(|p| p.red() < 80 && p.green() < 80 && p.blue() < 80).count();
        // The line, and the words of title and legend.
        assert!(blue > 500 && dark > 50, "{blue} {dark}");
    }
}
